import keras
import numpy as np
import pytest
from keras import ops

from hortus.engine import kernels
from hortus.vision.ops import nms

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


@pytest.mark.skipif(not ON_TENSORFLOW, reason="only TensorFlow has the kernel")
@pytest.mark.parametrize("fixed", [False, True])
def test_fused_batch_norm_is_the_formula(fixed):
    random = np.random.RandomState(0)
    x = random.normal(2.0, 3.0, (4, 3, 5, 6)).astype("float32")
    gamma, beta, mean = random.normal(size=(3, 6)).astype("float32")
    variance = mean**2 + 0.1
    given = {"mean": mean, "variance": variance} if fixed else {}
    y, *moments = kernels.fused_batch_norm(x, gamma, beta, epsilon=1e-3, **given)
    if not fixed:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    # float32 rounding of sums of 60 numbers.
    np.testing.assert_allclose(moments, [mean, variance], rtol=1e-5)
    expected = (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    np.testing.assert_allclose(y, expected, atol=1e-4)


def test_fused_batch_norm_leaves_alone_what_the_kernel_would_change():
    x, one = np.ones((2, 1, 1, 3), "float32"), np.ones(3, "float32")
    assert kernels.fused_batch_norm(x, one, one, epsilon=1e-6) is None
    assert kernels.fused_batch_norm(ops.cast(x, "int32"), one, one, epsilon=1e-3) is None


def suppressed(compiled):
    random = np.random.RandomState(0)
    low = random.uniform(0, 60, (2, 40, 1, 2))
    boxes = np.concatenate([low, low + random.uniform(5, 40, low.shape)], -1).astype("float32")
    scores = random.uniform(0, 1, (2, 40, 3)).astype("float32")
    scores[1, 2:] = 0.0
    settings = {"iou_threshold": 0.4, "score_threshold": 0.3, "max_detections": 50}

    def suppress(boxes, scores):
        return nms.per_class(boxes, scores, kernel=kernels.non_max_suppression, **settings)

    return nms.per_class(boxes, scores, **settings), compiled(suppress)(boxes, scores)


@pytest.mark.skipif(not ON_TENSORFLOW, reason="only TensorFlow has the kernel")
def test_non_max_suppression_is_the_plain_one():
    expected, actual = suppressed(lambda function: function)
    assert int(expected.count[0]) == 50 and 0 < int(expected.count[1]) <= 6  # full and padded
    for a, b in zip(actual[:4], expected[:4], strict=True):
        # Chosen, not computed: the same numbers.
        np.testing.assert_array_equal(ops.convert_to_numpy(a), ops.convert_to_numpy(b))


@pytest.mark.skipif(not ON_TENSORFLOW, reason="only TensorFlow has the kernel")
def test_non_max_suppression_compiles():
    import tensorflow as tf

    expected, actual = suppressed(lambda function: tf.function(function, jit_compile=True))
    np.testing.assert_array_equal(actual.scores, expected.scores)


def test_outside_of_a_strategy_there_is_one_replica():
    assert kernels.separate_replicas() == 1
    assert ops.convert_to_numpy(kernels.sum_over_replicas(ops.ones(()))) == 1.0


@pytest.mark.skipif(not ON_TENSORFLOW, reason="elsewhere it is plain operations")
def test_the_gradient_of_layer_norm_is_that_of_differentiation():
    import tensorflow as tf

    random = np.random.RandomState(0)
    x, weights = (tf.constant(random.normal(size=(4, 5, 8)).astype("float32")) for _ in range(2))
    gamma, beta = (tf.constant(random.normal(size=8).astype("float32")) for _ in range(2))

    def plain_layer_norm():
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) / tf.sqrt(variance + 1e-6) * gamma + beta

    def ours():
        return kernels.layer_norm(x, gamma, beta, epsilon=1e-6)

    results = []
    for function in (ours, plain_layer_norm):
        with tf.GradientTape() as tape:
            tape.watch([x, gamma, beta])
            y = function()
            loss = tf.reduce_sum(y * weights)
        results.append([y, *tape.gradient(loss, [x, gamma, beta])])
    for one, other in zip(*results, strict=True):
        # float32 rounding of sums of 20 numbers.
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(
    ("value", "amount", "expected"), [(1.5, 2, 3.5), (3, True, 4)], ids=["float32", "int32"]
)
def test_a_number_of_any_kind_is_added(request, value, amount, expected):
    variable = keras.Variable(value, dtype=request.node.callspec.id)
    kernels.add_number(variable, amount)
    assert float(variable.value) == expected


def test_in_a_stateless_scope_the_variable_itself_stays():
    variable = keras.Variable(1.0)
    with keras.StatelessScope():
        kernels.add_number(variable, 2.0)
        assert float(variable.value) == 3.0
    assert float(variable.value) == 1.0
