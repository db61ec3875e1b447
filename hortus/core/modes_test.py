import pytest

from hortus.core import flags, modes, train_lib
from hortus.core.config_definitions import TrainerConfig


def test_all_launchers_know_the_same_modes():
    assert flags.MODES == tuple(modes.MODES) == (*modes.TRAIN_MODES, *modes.EVAL_MODES)
    assert train_lib.TRAIN_MODES is modes.TRAIN_MODES


def test_a_mode_says_what_it_does():
    assert modes.get("train").trains and not modes.get("train").evaluates
    assert modes.get("eval").evaluates and not modes.get("eval").trains
    for mode in modes.MODES.values():
        assert mode.description
        assert not mode.interval or mode.interval in TrainerConfig().as_dict()
    assert modes.describe([modes.EvalMode.eval]) == "eval: evaluates the newest checkpoint."
    with pytest.raises(ValueError, match=r"unknown mode 'trian'.*train"):
        modes.get("trian")
