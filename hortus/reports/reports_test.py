"""Reports of runs whose folders are written by hand."""

import html.parser
import io
import json
import math
import re

import numpy as np
import pytest
from PIL import Image

from hortus.core import event_file
from hortus.core.metrics_history import MetricsHistory
from hortus.reports import comparison, curves, page, runs


def write_run(folder, accuracy=0.9, rate=0.1, steps=(10, 20)):
    folder.mkdir(parents=True)
    (folder / "params.yaml").write_text(
        "trainer:\n  train_steps: 40\n  best_checkpoint_eval_metric: accuracy\n"
        f"  learning_rate: {rate}\ntask:\n  name: <b>mine</b>\n"
    )
    history = MetricsHistory(folder / "metrics.jsonl")
    for step in steps:
        history.record(step, "train", {"training_loss": 5.0 / step, "accuracy": 0.5})
        history.record(
            step, "validation", {"validation_loss": 6.0 / step, "accuracy": accuracy - step / 1000}
        )
    (folder / "best").mkdir()
    (folder / "best" / "info.json").write_text(json.dumps({"accuracy": accuracy}))
    (folder / "run.json").write_text(
        json.dumps(
            {
                "starts": [
                    {
                        "time": 1.0,
                        "command": "hortus train",
                        "engine": "jax",
                        "machine": {"python": "3.11", "packages": {"keras": "3.12"}},
                        "origins": {"trainer.train_steps": "mine.yaml:3"},
                    }
                ]
            }
        )
    )
    events = event_file.EventFile(str(folder / "validation"))
    for step, grey in ((10, 10), (20, 200)):
        picture = np.full([1, 4, 6, 3], grey, np.uint8)
        events.write(event_file.image("image/confusion", picture), step)
    events.close()
    return folder


class Checker(html.parser.HTMLParser):
    """Sees that what is opened is closed, and that nothing comes from elsewhere."""

    VOID = ("meta", "link", "img")

    def __init__(self):
        super().__init__()
        self.open, self.sources = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "href")]

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_page(text):
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert all(source.startswith("data:") for source in checker.sources)
    assert "<script" not in text
    return checker


def test_a_report_has_metrics_curves_pictures_config_and_machine(tmp_path):
    text = page.render(runs.RecordedRun(write_run(tmp_path / "mine")))
    checker = check_page(text)
    assert "best accuracy" in text and "0.9<" in text
    assert "20 of 40" in text
    assert text.count("<svg") == 2
    assert "mine.yaml:3" in text and "hortus train" in text and "keras 3.12" in text
    assert "&lt;b&gt;mine&lt;/b&gt;" in text and "<b>mine</b>" not in text
    pictures = [source for source in checker.sources if source.startswith("data:image/png")]
    assert len(pictures) == 1


def test_the_newest_picture_of_a_tag_is_shown(tmp_path):
    (picture,) = runs.RecordedRun(write_run(tmp_path / "mine")).pictures()
    assert (picture.tag, picture.step) == ("confusion", 20)
    assert np.asarray(Image.open(io.BytesIO(picture.png)))[0, 0, 0] == 200


def test_a_run_that_has_only_begun_has_a_report(tmp_path):
    (tmp_path / "params.yaml").write_text("trainer: {train_steps: 5}\n")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "split": "tr')
    text = page.render(runs.RecordedRun(tmp_path))
    check_page(text)
    assert "No evaluation yet" in text


def test_what_is_no_run_says_why(tmp_path):
    with pytest.raises(runs.RunError, match="no such folder"):
        runs.RecordedRun(tmp_path / "absent")
    with pytest.raises(runs.RunError, match=r"is no run: it has no params\.yaml"):
        runs.RecordedRun(tmp_path)


def test_the_best_value_is_least_for_losses_and_most_for_the_rest():
    assert runs.best_of("box_loss", [(1, 3.0), (2, float("nan")), (3, 1.0)]) == (3, 1.0)
    assert runs.best_of("AP50", [(1, 0.3), (2, 0.5), (3, 0.4)]) == (2, 0.5)
    assert runs.best_of("loss", [(1, float("nan"))])[0] == 1


def test_runs_are_compared_by_metrics_and_config(tmp_path):
    found = [
        runs.RecordedRun(write_run(tmp_path / "a")),
        runs.RecordedRun(write_run(tmp_path / "b", 0.8, rate=0.2)),
    ]
    assert comparison.metric_rows(found) == [
        ("validation_loss", "0.3 @ 20", "0.3 @ 20"),
        ("accuracy", "0.89 @ 10", "0.79 @ 10"),
    ]
    assert comparison.config_rows(found) == [("trainer.learning_rate", "0.1", "0.2")]
    check_page(comparison.render(found))


def test_runs_with_the_same_name_are_called_by_their_paths(tmp_path):
    found = [runs.RecordedRun(write_run(tmp_path / name / "run")) for name in ("a", "b")]
    assert comparison.names(found) == [str(tmp_path / "a/run"), str(tmp_path / "b/run")]


@pytest.mark.parametrize(
    "values", [[1.0], [2.0, 2.0], [0.0, 0.0], [1e-9, 1e9], [-3.0, 5.0], [float("nan"), 1.0]]
)
def test_a_chart_keeps_all_points_inside(values):
    drawn = curves.chart("t", {"a": list(enumerate(values))})
    points = re.search(r'points="([^"]*)"', drawn)[1].split()
    for point in points:
        x, y = map(float, point.split(","))
        assert 0 <= x <= 440 and 0 <= y <= 240


def test_a_chart_of_nothing_is_empty():
    assert curves.chart("t", {"a": [(1, float("inf"))]}) == ""


def test_numbers_are_short():
    assert [curves.short(value) for value in (0.25, 1200, 15000, 3e-5)] == [
        "0.25",
        "1200",
        "15k",
        "3e-05",
    ]


@pytest.mark.parametrize(
    "points",
    [
        [(0, 1e308), (1, -1e308), (2, 1.0)],
        [(0, 5e-324), (1, 0.0)],
        [(0, 1.0), (1, 1.0 + 1e-15)],
        [(2**62, 1.0), (2**62 + 1, 2.0)],
        [(0, math.nan), (1, math.inf), (2, 3.0)],
    ],
)
def test_values_at_the_ends_of_floats_are_drawn_or_left_out(points):
    drawn = curves.chart("loss", {"train": points})
    assert drawn.startswith("<svg") and "nan" not in drawn and "inf" not in drawn
