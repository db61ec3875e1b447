import keras
import numpy as np
import pytest
import tensorflow as tf

from hortus import engine
from hortus.vision.modeling.layers.regularization.regularizers import L2

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of the TensorFlow engine"
)


def variable(*values):
    made = keras.Variable(np.array(values, "float32"))
    made.regularizer = L2(0.1)
    return made


def gradients(fn, variables, compiled, optimizer=None):
    def run():
        return engine.value_and_grad(fn, variables, optimizer)

    result, grads = (tf.function(run) if compiled else run)()
    return float(result), [None if grad is None else grad.numpy() for grad in grads]


@pytest.mark.parametrize("compiled", [False, True])
def test_penalties_are_part_of_the_gradients(compiled):
    used, only_penalised, frozen, shared = variable(1, 2), variable(3), variable(5), variable(7)

    def loss():
        penalties = [v.regularizer(v) for v in (used, only_penalised, frozen, shared, shared)]
        return 3.0 * keras.ops.sum(used.value) + keras.ops.sum(shared.value) + sum(penalties)

    value, grads = gradients(loss, [used, only_penalised, shared], compiled)
    # float32; the penalty of w is 0.1 w^2, and its gradient 0.2 w.
    np.testing.assert_allclose(value, 9 + 7 + 0.1 * (5 + 9 + 25 + 49 + 49), rtol=1e-6)
    for actual, expected in zip(grads, [[3.2, 3.4], [0.6], [1 + 2 * 1.4]], strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_the_scale_of_the_loss_is_theirs_too():
    weight = variable(2)
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(), initial_scale=8.0)
    optimizer.build([weight])
    _, grads = gradients(lambda: weight.regularizer(weight), [weight], True, optimizer)
    np.testing.assert_allclose(grads[0], [8 * 0.4], rtol=1e-6)


def test_a_tape_of_ones_own_sees_them():
    weight = variable(2)
    with tf.GradientTape() as tape:
        loss = weight.regularizer(weight)
    np.testing.assert_allclose(tape.gradient(loss, weight.value), [0.4], rtol=1e-6)


def test_penalties_of_other_tensors_are_differentiated_as_ever():
    weight = variable(2)

    def loss():
        return L2(0.1)(weight.value * 3.0)

    _, grads = gradients(loss, [weight], True)
    np.testing.assert_allclose(grads[0], [0.2 * 6 * 3], rtol=1e-6)


def test_they_wait_for_the_gradient():
    """No product with the weights may be computed before the gradient that it is added to."""
    weight = variable(1, 2)

    @tf.function
    def run(x):
        return engine.value_and_grad(
            lambda: keras.ops.sum(weight.value * x) + weight.regularizer(weight), [weight]
        )[1]

    graph = run.get_concrete_function(tf.TensorSpec([2])).graph
    reads = [op for op in graph.get_operations() if op.type == "ReadVariableOp"]
    assert [op for op in reads if op.control_inputs]
