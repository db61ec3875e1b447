import keras
import numpy as np
import pytest

from hortus.optimization.adafactor import Adafactor

# Four float32 steps against float64.
RTOL = 2e-5

START = np.random.default_rng(0).normal(size=(3, 4, 5))
GRADIENTS = np.random.default_rng(1).normal(size=(4, 3, 4, 5))


def expected(rate=0.1, factored=True, scaled=True, beta1=0.0, threshold=1.0, decay=0.0):
    """The paper's algorithm in float64 on a [3, 4, 5] variable, of which 4 and 5 are factored."""
    weights, rows, columns = START.copy(), np.zeros((3, 4)), np.zeros((3, 5))
    whole, momentum = np.zeros((3, 4, 5)), np.zeros((3, 4, 5))
    rms = lambda x: np.sqrt(np.mean(x**2))  # noqa: E731
    for t, gradient in enumerate(GRADIENTS, start=1):
        beta2, squares = 1 - t**-0.8, gradient**2 + 1e-30
        rows = beta2 * rows + (1 - beta2) * squares.mean(axis=2)
        columns = beta2 * columns + (1 - beta2) * squares.mean(axis=1)
        whole = beta2 * whole + (1 - beta2) * squares
        outer = rows[:, :, None] * columns[:, None, :] / rows.mean(axis=1)[:, None, None]
        update = gradient / np.sqrt(outer if factored else whole)
        update /= max(1.0, rms(update) / threshold)
        weights = weights * (1 - rate * decay)
        momentum = beta1 * momentum + (1 - beta1) * (
            rate * update * (max(rms(weights), 1e-3) if scaled else 1.0)
        )
        weights = weights - momentum
    return weights


def trained(**arguments):
    variable = keras.Variable(START.astype("float32"), name="kernel")
    optimizer = Adafactor(0.1, **{"min_dim_size_to_factor": 4} | arguments)
    for gradient in GRADIENTS.astype("float32"):
        optimizer.apply_gradients([(gradient, variable)])
    return variable.numpy(), optimizer


@pytest.mark.parametrize(
    ("arguments", "reference"),
    [
        ({}, {}),
        ({"factored": False}, {"factored": False}),
        ({"min_dim_size_to_factor": 5}, {"factored": False}),
        ({"multiply_by_parameter_scale": False}, {"scaled": False}),
        ({"beta1": 0.9}, {"beta1": 0.9}),
        ({"clipping_threshold": 0.5}, {"threshold": 0.5}),
        ({"clipping_threshold": None}, {"threshold": 1e9}),
        ({"weight_decay": 0.1}, {"decay": 0.1}),
        ({"weight_decay": 0.1, "include_in_weight_decay": "^ker"}, {"decay": 0.1}),
        ({"weight_decay": 0.1, "include_in_weight_decay": "bias"}, {}),
    ],
)
def test_updates_equal_the_paper(arguments, reference):
    np.testing.assert_allclose(trained(**arguments)[0], expected(**reference), RTOL, 1e-6)


def test_factoring_saves_memory():
    shapes = lambda optimizer: sorted(tuple(v.shape) for v in optimizer.variables if len(v.shape))  # noqa: E731
    assert shapes(trained()[1]) == [(3, 4), (3, 5)]
    assert shapes(trained(factored=False)[1]) == [(3, 4, 5)]
    assert shapes(trained(beta1=0.9)[1]) == [(3, 4), (3, 4, 5), (3, 5)]


def test_every_variable_has_a_name_of_its_own():
    paths = [v.path for v in trained(beta1=0.9)[1].variables]
    assert len(set(paths)) == len(paths) == 5


def test_the_offset_moves_the_decay_of_the_second_moment():
    fresh = keras.Variable([1.0])
    late = Adafactor(0.1, step_offset=5)
    late.build([fresh])
    late.iterations.assign(5)
    late.apply([np.array([3.0], "float32")])
    first = keras.Variable([1.0])
    Adafactor(0.1).apply_gradients([(np.array([3.0], "float32"), first)])
    np.testing.assert_allclose(fresh.numpy(), first.numpy(), 1e-6)


def test_a_zero_gradient_moves_nothing():
    variable = keras.Variable(np.ones((4, 4), "float32"))
    Adafactor(0.1).apply_gradients([(np.zeros((4, 4), "float32"), variable)])
    np.testing.assert_array_equal(variable.numpy(), 1.0)
