import math

import pytest

from hortus.core.actions import EarlyStopping


class Controller:
    def __init__(self):
        self.step = 0
        self.reasons = []

    def request_stop(self, reason):
        self.reasons.append(reason)


def stopping_step(action, values):
    """The step, 10 apart, at which the action asks to stop; None if it does not."""
    controller = Controller()
    action.bind(controller)
    action.begin()
    for value in values:
        if controller.reasons:
            break
        controller.step += 10
        action({"AP": value})
    return controller.step if controller.reasons else None


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5], {}, None),
        ([0.5, 0.4, 0.45, 0.6], {}, 30),
        ([0.5, 0.4, 0.6, 0.5, 0.5], {}, 50),
        ([0.5, 0.5, 0.5], {}, 30),
        ([0.5, 0.51, 0.52], {"min_delta": 0.1}, 30),
        ([0.5, 0.4, 0.3, 0.2], {"higher_is_better": False}, None),
        ([0.5, math.nan, math.nan], {}, 30),
        ([math.nan, math.nan], {}, 20),
    ],
)
def test_patience(values, options, expected):
    assert stopping_step(EarlyStopping("AP", patience=2, **options), values) == expected


def test_the_reason_tells_the_best_value():
    action = EarlyStopping("AP", patience=1)
    stopping_step(action, [0.5, 0.4])
    assert action.controller.reasons == [
        "AP has not improved in 1 evaluations: 0.5 at step 10 is still the best"
    ]


def test_counting_goes_on_after_a_restart_and_the_end_stays_the_end(tmp_path):
    options = {"metric": "AP", "patience": 3, "filename": tmp_path / "stop.json"}
    assert stopping_step(EarlyStopping(**options), [0.5, 0.4, 0.4]) is None
    resumed = EarlyStopping(**options)
    resumed.bind(Controller())
    resumed.controller.step = 40
    resumed({"AP": 0.4})
    assert len(resumed.controller.reasons) == 1
    assert stopping_step(EarlyStopping(**options), [0.9]) == 0  # before the first step


def test_an_evaluation_that_is_made_again_counts_once(tmp_path):
    options = {"metric": "AP", "patience": 2, "filename": tmp_path / "stop.json"}
    assert stopping_step(EarlyStopping(**options), [0.5, 0.4]) is None
    resumed = EarlyStopping(**options)
    resumed.bind(Controller())
    resumed.rewind(10)
    resumed.controller.step = 20
    for _ in range(2):
        resumed({"AP": 0.4})
    assert resumed.controller.reasons == []


def test_patience_below_one_is_an_error():
    with pytest.raises(ValueError, match="patience is 0"):
        EarlyStopping("AP", patience=0)
