import json
import math

import pytest

from hortus.core.actions.metric_record import MetricRecord, is_better


def test_values_survive_in_the_order_of_steps(tmp_path):
    path = tmp_path / "sub" / "best.json"
    record = MetricRecord(path, "AP")
    for step, value in [(100, 0.5), (20, 0.25), (100, math.inf)]:
        record.set(step, value)
    again = MetricRecord(path, "AP")
    assert list(again.values.items()) == [(20, 0.25), (100, math.inf)]
    assert json.loads(path.read_text())["metric"] == "AP"


def test_rewind_forgets_what_came_later(tmp_path):
    record = MetricRecord(tmp_path / "best.json", "AP")
    for step in (10, 20, 30):
        record.set(step, step)
    record.rewind(20)
    assert MetricRecord(tmp_path / "best.json", "AP").values == {10: 10, 20: 20}


def test_another_metric_begins_anew(tmp_path):
    MetricRecord(tmp_path / "best.json", "AP").set(1, 0.5)
    assert MetricRecord(tmp_path / "best.json", "loss").values == {}


def test_who_does_not_write_reads(tmp_path):
    path = tmp_path / "best.json"
    MetricRecord(path, "AP").set(1, 0.5)
    other = MetricRecord(path, "AP", write=False)
    other.set(2, 0.75)
    assert other.values == {1: 0.5, 2: 0.75}
    assert MetricRecord(path, "AP").values == {1: 0.5}


def test_a_file_of_something_else_is_told(tmp_path):
    (tmp_path / "best.json").write_text("[]")
    with pytest.raises(ValueError, match=r"best\.json holds no record of a metric"):
        MetricRecord(tmp_path / "best.json", "AP").values  # noqa: B018


@pytest.mark.parametrize(
    ("value", "best", "higher", "delta", "expected"),
    [
        (2.0, 1.0, True, 0.0, True),
        (1.0, 1.0, True, 0.0, False),
        (1.0, 2.0, False, 0.0, True),
        (1.05, 1.0, True, 0.1, False),
        (0.95, 1.0, False, 0.1, False),
        (math.nan, 1.0, True, 0.0, False),
        (1.0, math.nan, False, 0.0, True),
        (math.nan, math.nan, True, 0.0, False),
    ],
)
def test_is_better(value, best, higher, delta, expected):
    assert is_better(value, best, higher, delta) is expected
