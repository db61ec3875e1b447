import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from hortus import engine
from hortus.engine import kernels
from hortus.engine.tensorflow import one_pass
from hortus.vision.losses import focal
from hortus.vision.modeling.layers import activations

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of the TensorFlow engine"
)


def power(x, factor, *, exponent):
    return factor * x**exponent


def differentiated(function, *inputs, spec=None):
    """Graph of a training step that computes `function` of a variable, and its gradient."""
    variable = keras.Variable(inputs[0])

    @tf.function
    def run(x):
        def loss():
            outputs = function(variable.value + 0.0 * x, *inputs[1:])
            return ops.sum(outputs * np.arange(1.0, 7.0, dtype="float32").reshape(2, 3)), outputs

        (_, outputs), (gradient,) = engine.value_and_grad(loss, [variable])
        return outputs, gradient

    graph = run.get_concrete_function(spec or tf.TensorSpec([2, 3])).graph
    return run(tf.zeros([2, 3])), is_compiled(graph)


def is_compiled(graph):
    return any("_XlaMustCompile" in op.node_def.attr for op in graph.get_operations())


NUMBERS = np.array([[-4.0, -1.0, 0.0], [0.5, 2.0, 9.0]], "float32")


@pytest.mark.parametrize("name", ["swish", "hard_swish", "approximate_gelu"])
def test_activations_are_themselves(name):
    plain = {
        "swish": keras.activations.silu,
        "hard_swish": keras.activations.hard_silu,
        "approximate_gelu": lambda x: keras.activations.gelu(x, approximate=True),
    }[name]
    (outputs, gradient), compiled = differentiated(activations.get(name), NUMBERS)
    (expected, slope), plainly = differentiated(plain, NUMBERS)
    assert compiled and not plainly
    # Float32; XLA rounds exponentials otherwise.
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6)


def test_the_focal_loss_is_itself():
    targets = np.array([[0, 1, 0], [1, 0, 0]], "float32")
    loss, results = focal.FocalLoss(reduction=None), []
    for allow in (True, False):
        with kernels.FAST_KERNELS.scope(allow):
            result, compiled = differentiated(lambda x: loss.call(targets, x), NUMBERS)
        assert compiled == allow
        results.append(result)
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_constants_and_other_inputs_count():
    factor = tf.fill([2, 3], 2.0)
    for exponent in (2, 3):
        (outputs, gradient), compiled = differentiated(
            lambda x, exponent=exponent: kernels.in_one_pass(power, x, factor, exponent=exponent),
            NUMBERS,
        )
        assert compiled
        np.testing.assert_allclose(outputs, 2 * NUMBERS**exponent, rtol=1e-6)
        upstream = np.arange(1.0, 7.0).reshape(2, 3)
        expected = 2 * exponent * NUMBERS ** (exponent - 1) * upstream
        np.testing.assert_allclose(gradient, expected, rtol=1e-6)


@pytest.mark.parametrize("allow", [True, False])
def test_inputs_after_the_first_have_no_gradient(allow):
    x, factor = keras.Variable(NUMBERS), keras.Variable(NUMBERS)
    with kernels.FAST_KERNELS.scope(allow):
        _, gradients = engine.value_and_grad(
            lambda: ops.sum(kernels.in_one_pass(power, x.value, factor.value, exponent=2)),
            [x, factor],
        )
    assert gradients[0] is not None and gradients[1] is None


def test_what_is_not_a_training_step_stays_plain():
    run = tf.function(activations.get("swish"))
    assert not is_compiled(run.get_concrete_function(tf.TensorSpec([2, 3])).graph)


def test_unknown_sizes_stay_plain():
    spec = tf.TensorSpec([None, 3])
    _, compiled = differentiated(activations.get("swish"), NUMBERS[:1], spec=spec)
    assert not compiled


def test_several_devices_stay_plain(monkeypatch):
    assert one_pass.is_possible((tf.zeros([2]),))
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["CPU:0", "CPU:1"])
    assert not one_pass.is_possible((tf.zeros([2]),))
