import math
import types

import pytest

from hortus.core.actions import NewBestMetric


def at(action, step, value):
    action.bind(types.SimpleNamespace(step=step))
    return action({"sub": {"AP": value}})


def test_better_values_than_all_others():
    action = NewBestMetric("sub|AP")
    values = [0.1, 0.3, 0.3, math.nan, 0.2, 0.4]
    answers = [at(action, step, value) for step, value in enumerate(values)]
    assert answers == [True, True, False, False, False, True]
    assert action.best_value == 0.4


def test_lower_values_by_a_function_and_without_a_controller():
    action = NewBestMetric(lambda logs: logs["loss"], higher_is_better=False)
    assert [action({"loss": v}) for v in (3.0, 2.0, 2.5)] == [True, True, False]


def test_a_restart_remembers_and_answers_the_same_at_the_same_step(tmp_path):
    path = tmp_path / "best.json"
    assert at(NewBestMetric("sub|AP", filename=path), 10, 0.5)
    again = NewBestMetric("sub|AP", filename=path)
    assert at(again, 10, 0.5)
    assert not at(again, 20, 0.4)
    assert again.best_value == 0.5


def test_steps_that_are_undone_do_not_count(tmp_path):
    action = NewBestMetric("sub|AP", filename=tmp_path / "best.json")
    at(action, 10, 0.5)
    at(action, 20, 0.9)
    action.rewind(10)
    assert action.best_value == 0.5
    assert at(action, 15, 0.6)


def test_an_unknown_metric_is_told():
    with pytest.raises(KeyError, match=r"they hold sub\|AP"):
        NewBestMetric("mAP")({"sub": {"AP": 1.0}})
