import json
import math

import numpy as np
import pytest

from hortus.core.metrics_history import MetricsHistory


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def told(path):
    return [(line["step"], line["split"], line["values"]) for line in lines(path)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "metrics.jsonl"


def test_a_line_per_step_and_split(path):
    history = MetricsHistory(path)
    history.record(10, "train", {"loss": np.float32(0.5), "image/x": np.zeros([1, 2, 2, 3])})
    history.record(10, "validation", {"coco": {"AP": 0.25}, "images": 7})
    assert told(path) == [
        (10, "train", {"loss": 0.5}),
        (10, "validation", {"coco": {"AP": 0.25}, "images": 7}),
    ]
    assert all(line["wall_time"] > 1e9 for line in lines(path))


def test_values_that_are_not_finite_stay_what_they_are(path):
    MetricsHistory(path).record(1, "train", {"a": math.nan, "b": -math.inf})
    values = lines(path)[0]["values"]
    assert math.isnan(values["a"]) and values["b"] == -math.inf


def test_rewind_drops_what_came_later_in_all_splits(path):
    history = MetricsHistory(path)
    for step in (10, 20, 30):
        history.record(step, "train", {"loss": step})
        history.record(step, "validation", {"ap": step})
    MetricsHistory(path).rewind(20)
    assert [line["step"] for line in lines(path)] == [10, 10, 20, 20]
    # The first object learns of it.
    assert history.steps("validation") == {10, 20}


def test_a_killed_and_resumed_run_has_the_history_of_an_uninterrupted_one(path, tmp_path):
    def run(history, steps):
        for step in steps:
            history.record(step, "train", {"loss": 1 / step})

    run(MetricsHistory(path), range(1, 8))
    with path.open("a") as file:
        file.write('{"step": 8, "spl')  # killed in the middle of a line
    resumed = MetricsHistory(path)
    resumed.rewind(4)
    run(resumed, range(5, 11))
    other = tmp_path / "other.jsonl"
    run(MetricsHistory(other), range(1, 11))
    assert told(path) == told(other)


def test_a_torn_line_alone_is_dropped_before_anything_is_appended(path):
    MetricsHistory(path).record(1, "train", {"a": 1})
    with path.open("a") as file:
        file.write('{"step": 2')
    MetricsHistory(path).record(2, "train", {"a": 2})
    assert told(path) == [(1, "train", {"a": 1}), (2, "train", {"a": 2})]


def test_other_values_of_the_same_step_replace_the_former(path):
    history = MetricsHistory(path)
    history.record(1, "train", {"a": math.nan})
    assert history.has(1, "train", {"a": math.nan})
    before = path.read_bytes()
    history.record(1, "train", {"a": math.nan})
    assert path.read_bytes() == before
    assert not history.has(1, "train", {"a": 2})
    history.record(1, "train", {"a": 2})
    assert told(path) == [(1, "train", {"a": 2})]


def test_two_writers_lose_nothing(path):
    trainer, evaluator = MetricsHistory(path), MetricsHistory(path)
    trainer.record(1, "train", {"a": 1})
    evaluator.record(1, "validation", {"a": 1})
    trainer.record(1, "train", {"a": 2})  # rewrites the file
    evaluator.record(2, "validation", {"a": 3})
    assert len(lines(path)) == 3


def test_rewind_without_a_file_makes_none(path):
    MetricsHistory(path).rewind(0)
    assert not path.exists()
