import keras
import numpy as np
import pytest

from hortus.optimization.adamw import AdamWeightDecay


def named(name):
    with keras.name_scope("block"):
        return keras.Variable([1.0], name=name)


def decay_of(**arguments):
    """The names of three variables that shrink although their gradients are zero."""
    variables = [named("kernel"), named("bias"), named("gamma")]
    optimizer = AdamWeightDecay(1.0, weight_decay=0.5, **arguments)
    gradient = np.zeros(1, "float32")
    optimizer.apply_gradients([(gradient, variable) for variable in variables])
    return [v.name for v in variables if v.numpy() == [0.5]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["kernel", "bias", "gamma"]),
        ({"exclude": ["bias", "gamma"]}, ["kernel"]),
        ({"exclude": "block/(bias|gamma)$"}, ["kernel"]),
        ({"include": "kernel"}, ["kernel", "bias", "gamma"]),
        ({"include": ".*(kernel|weight):0$", "exclude": ".*"}, ["kernel"]),
    ],
)
def test_names_decide_what_decays(arguments, expected):
    assert decay_of(**arguments) == expected


def test_its_clip_takes_the_loss_scale_into_account():
    moved = []
    for scale in (None, 64.0):
        variable = named("kernel")
        optimizer = AdamWeightDecay(
            0.1, gradient_clip_norm=1.0, epsilon=1.0, loss_scale_factor=scale
        )
        gradient = np.array([2.0 * (scale or 1.0)], "float32")
        optimizer.apply_gradients([(gradient, variable)])
        moved.append(float(variable.numpy()[0]))
    unclipped = named("kernel")
    optimizer = AdamWeightDecay(0.1, epsilon=1.0)
    optimizer.apply_gradients([(np.array([2.0], "float32"), unclipped)])
    assert moved[0] == pytest.approx(moved[1], abs=1e-7)
    assert moved[0] != pytest.approx(float(unclipped.numpy()[0]), abs=1e-4)
