import numpy as np

from hortus.core.checkpoints.state_dict import StateDict


def test_what_wrappers_put_before_all_names_is_taken_off():
    found = StateDict("x", {"module.a.weight": np.ones(1), "module.b.weight": np.ones(2)})
    assert found.keys() == ["a.weight", "b.weight"]
    assert found.shape("b.weight") == (2,)
    assert "a.weight" in found


def test_what_stands_before_some_names_is_kept():
    found = StateDict("x", {"model.a": np.ones(1), "head.b": np.ones(2)})
    assert found.keys() == ["model.a", "head.b"]


def test_averages_take_the_place_of_weights():
    found = StateDict("x", {"a": np.ones(1)}, {"a": np.zeros(1)})
    assert found.averaged().read("a") == 0
    assert not found.averaged().has_averages
