import keras
import numpy as np
import pytest

from hortus.optimization.lamb import LAMB
from hortus.optimization.lars import LARS
from hortus.optimization.layer_adaptation import trust_ratio


def test_the_ratio_of_norms():
    weights, update = np.array([3.0, 4.0], "float32"), np.array([[0.0], [2.0]], "float32")
    assert float(trust_ratio(weights, update)) == pytest.approx(2.5)


@pytest.mark.parametrize(("weights", "update"), [([0.0], [2.0]), ([2.0], [0.0]), ([0.0], [0.0])])
def test_zeros_have_a_ratio_of_one(weights, update):
    assert float(trust_ratio(np.float32(weights), np.float32(update))) == 1.0


def step_of(optimizer, name="kernel", start=2.0, gradient=3.0):
    """How far one step moves a variable of that name."""
    with keras.name_scope("layer"):
        variable = keras.Variable([start], name=name)
    optimizer.apply_gradients([(np.array([gradient], "float32"), variable)])
    return start - float(variable.numpy()[0])


def test_lars_moves_by_a_share_of_the_norm_whatever_the_gradient():
    for gradient in (3.0, 3000.0):
        optimizer = LARS(0.5, eeta=0.1)
        assert step_of(optimizer, gradient=gradient) == pytest.approx(0.5 * 0.1 * 2.0, rel=1e-5)


def test_lars_without_adaptation_is_sgd_with_momentum():
    optimizer = LARS(0.5, exclude_adaptation="kernel")
    assert step_of(optimizer) == pytest.approx(1.5, rel=1e-6)


def test_lamb_moves_by_the_norm():
    assert step_of(LAMB(0.1)) == pytest.approx(0.2, rel=1e-5)
    assert step_of(LAMB(0.1, exclude_adaptation="layer/kernel$")) == pytest.approx(0.1, rel=1e-5)


@pytest.mark.parametrize("make", [LAMB, LARS])
def test_what_does_not_decay_does_not_adapt_unless_said(make):
    free = step_of(make(0.1, weight_decay_rate=0.5, exclude_decay="kernel"))
    assert free == pytest.approx(step_of(make(0.1, exclude_adaptation="kernel")), rel=1e-6)
    arguments = {"exclude_decay": "kernel", "exclude_adaptation": "bias"}
    bound = step_of(make(0.1, weight_decay_rate=0.5, **arguments))
    assert bound == pytest.approx(step_of(make(0.1)), rel=1e-6)


def test_decay_is_inside_the_update():
    optimizer = LARS(1.0, weight_decay_rate=0.5, exclude_adaptation="kernel")
    assert step_of(optimizer, start=2.0, gradient=3.0) == pytest.approx(3.0 + 0.5 * 2.0)
