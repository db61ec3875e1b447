import keras
import numpy as np
import pytest
from keras import ops

from hortus.engine import kernels
from hortus.vision.ops import nms

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


def on_both_ways(kernel):
    return pytest.mark.parametrize("way", [kernel, kernel.plain], ids=["chosen", "plain"])


@on_both_ways(kernels.batch_norm)
@pytest.mark.parametrize("fixed", [False, True])
def test_batch_norm_is_the_formula(fixed, way):
    random = np.random.RandomState(0)
    x = random.normal(2.0, 3.0, (4, 3, 5, 6)).astype("float32")
    gamma, beta, mean = random.normal(size=(3, 6)).astype("float32")
    variance = mean**2 + 0.1
    given = {"mean": mean, "variance": variance} if fixed else {}
    y, *moments = way(x, gamma, beta, epsilon=1e-3, **given)
    if not fixed:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    # float32 rounding of sums of 60 numbers.
    np.testing.assert_allclose([np.array(each) for each in moments], [mean, variance], rtol=1e-5)
    expected = (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    np.testing.assert_allclose(y, expected, atol=1e-4)


@on_both_ways(kernels.batch_norm)
def test_batch_norm_keeps_half_precision_and_float32_moments(way):
    x = ops.cast(np.random.RandomState(0).normal(size=(8, 4)), "bfloat16")
    one = ops.ones(4)
    found = way(x, one, one, epsilon=1e-3)
    types = [keras.backend.standardize_dtype(each.dtype) for each in found]
    assert types == ["bfloat16", "float32", "float32"]


@pytest.mark.skipif(not ON_TENSORFLOW, reason="only TensorFlow has the kernel")
def test_batch_norm_leaves_alone_what_the_kernel_would_change():
    x, one = np.ones((2, 1, 1, 3), "float32"), np.ones(3, "float32")
    assert kernels.batch_norm.fast(x, one, one, epsilon=1e-3) is not None
    assert kernels.batch_norm.fast(x, one, one, epsilon=1e-6) is None
    assert kernels.batch_norm.fast(ops.cast(x, "int32"), one, one, epsilon=1e-3) is None


@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_convolutions_are_those_of_keras(strides):
    """As declared and as chosen; the ways of a backend have tests of their own for gradients."""
    random = np.random.RandomState(0)
    x = ops.convert_to_tensor(random.normal(size=(2, 7, 6, 16)).astype("float32"))
    for side, function in ((1, kernels.convolution_1x1), (3, kernels.convolution_3x3)):
        kernel = ops.convert_to_tensor(random.normal(size=(side, side, 16, 20)).astype("float32"))
        expected = ops.convert_to_numpy(
            keras.layers.Conv2D(20, side, strides, "same").convolution_op(x, kernel)
        )
        for way in (function, function.plain):
            found = way(x, kernel, strides) if side == 1 else way([x], kernel, strides)[0]
            # Sums of up to 144 products in another order.
            np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@on_both_ways(kernels.normalized_convolution_1x1)
def test_a_normalized_convolution_is_both(way):
    random = np.random.RandomState(0)
    x = random.normal(2.0, 3.0, (4, 32, 32, 16)).astype("float32")
    kernel, (gamma, beta) = random.normal(size=(1, 1, 16, 96)), random.normal(size=(2, 96))
    y, mean, variance = way(
        ops.convert_to_tensor(x),
        *(ops.convert_to_tensor(each.astype("float32")) for each in (kernel,)),
        (1, 1),
        *(ops.convert_to_tensor(each.astype("float32")) for each in (gamma, beta)),
        epsilon=1e-3,
    )
    outputs = x.astype("float64") @ kernel[0, 0]
    normal = (outputs - outputs.mean((0, 1, 2))) / np.sqrt(outputs.var((0, 1, 2)) + 1e-3)
    # Sums over 4096 positions in float32.
    np.testing.assert_allclose(mean, outputs.mean((0, 1, 2)), atol=1e-4)
    np.testing.assert_allclose(variance, outputs.var((0, 1, 2)), rtol=1e-4)
    np.testing.assert_allclose(y, normal * gamma + beta, atol=1e-4)


@on_both_ways(kernels.half_sum_of_squares)
def test_half_a_sum_of_squares(way):
    assert float(way(ops.convert_to_tensor([1.0, 2.0, 3.0]))) == 7.0


def test_the_setting_lists_what_rounds_otherwise():
    assert kernels.FAST_KERNELS.governs == [
        "convolution_3x3",
        "convolution_1x1",
        "normalized_convolution_1x1",
        "in_one_pass",
    ]


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


@pytest.mark.skipif(not ON_TENSORFLOW, reason="elsewhere it is plain operations")
def test_the_gradient_of_layer_norm_is_that_of_differentiation():
    import tensorflow as tf

    random = np.random.RandomState(0)
    x, weights = (tf.constant(random.normal(size=(4, 5, 8)).astype("float32")) for _ in range(2))
    gamma, beta = (tf.constant(random.normal(size=8).astype("float32")) for _ in range(2))

    def plain_layer_norm():
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) / tf.sqrt(variance + 1e-6) * gamma + beta

    def ours(way=kernels.layer_norm):
        return way(x, gamma, beta, epsilon=1e-6)

    np.testing.assert_allclose(ours(kernels.layer_norm.plain), plain_layer_norm(), atol=1e-5)
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
