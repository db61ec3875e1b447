import math
import types

import pytest

from hortus.core.actions import DivergedError, Recovery
from hortus.core.divergence import Divergence


class Controller:
    def __init__(self, trainer=None, checkpoint=50):
        self.step = 100
        self.trainer = trainer
        self.checkpoint = checkpoint
        self.calls = []
        self.said = []
        self.progress = types.SimpleNamespace(say=self.said.append)

    @property
    def latest_checkpoint(self):
        return None if self.checkpoint is None else f"ckpt-{self.checkpoint}"

    def save_checkpoint(self):
        self.calls.append("save")

    def roll_back(self):
        self.calls.append("roll_back")
        return self.checkpoint

    def restore_checkpoint(self):
        self.calls.append("restore")
        return self.checkpoint


def bound(controller=None, **options):
    action = Recovery(**options)
    action.bind(controller or Controller())
    return action


GOOD = {"training_loss": 1.0, "accuracy": math.nan}
BAD = {"training_loss": math.nan, "head": {"box_loss": math.inf, "cls_loss": 1.0}}


def test_a_good_loss_passes():
    action = bound()
    action(GOOD)
    # The scale of float16 grows large without harm.
    action({**GOOD, "loss_scale": 1e9})
    assert action.controller.calls == []


@pytest.mark.parametrize("logs", [BAD, {"training_loss": 1e7}, {"training_loss": math.inf}])
def test_it_goes_back_as_often_as_allowed_and_then_gives_up(logs):
    action = bound(recovery_max_trials=2)
    action(logs)
    action(GOOD)
    action(logs)
    assert action.controller.calls == ["roll_back", "roll_back"]
    with pytest.raises(DivergedError, match=r"has not helped \(trials: 2\)"):
        action(logs)


def test_the_error_names_step_terms_and_where_the_batch_is():
    def find(max_steps, folder, loss_upper_bound, suspect):
        assert (max_steps, folder, loss_upper_bound, suspect) == (50, "/run/bad", 1e6, 77)
        return Divergence(77, ["box_loss is inf"], "/run/bad/77.npz")

    controller = Controller(types.SimpleNamespace(find_divergence=find, first_bad_step=77))
    with pytest.raises(DivergedError) as error:
        bound(controller, folder="/run/bad")(BAD)
    message = str(error.value)
    assert "at step 100: training_loss is nan, head|box_loss is inf." in message
    assert "cls_loss" not in message
    assert "Step 77 did it (box_loss is inf); its batch is in /run/bad/77.npz." in message
    assert "trainer.recovery_max_trials" in message
    assert controller.calls == ["restore"] and "from step 50" in controller.said[0]


@pytest.mark.parametrize(
    "trainer",
    [None, types.SimpleNamespace(find_divergence=lambda *args, **kwargs: None)],
)
def test_a_step_that_cannot_be_found_is_told(trainer):
    with pytest.raises(DivergedError, match="was not found"):
        bound(Controller(trainer), folder="/run/bad")(BAD)


def test_no_checkpoint_to_go_back_to():
    with pytest.raises(DivergedError, match="no checkpoint to go back to"):
        bound(Controller(checkpoint=None), recovery_max_trials=1)(BAD)


def test_a_new_run_gets_a_checkpoint_to_go_back_to():
    for checkpoint, calls in [(None, ["save"]), (50, [])]:
        action = bound(Controller(checkpoint=checkpoint))
        action.begin()
        assert action.controller.calls == calls


def test_first_steps_pass_and_minus_one_never_looks():
    bound(recovery_begin_steps=101)(BAD)
    action = bound(Controller(checkpoint=None), recovery_max_trials=-1)
    action.begin()
    action(BAD)
    assert action.controller.calls == []
