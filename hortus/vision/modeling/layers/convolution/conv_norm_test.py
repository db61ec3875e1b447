import keras
import numpy as np
import pytest
from keras import ops

from hortus.engine import kernels
from hortus.vision.modeling.layers.convolution.conv2d import Conv2D
from hortus.vision.modeling.layers.convolution.conv_norm import conv_norm
from hortus.vision.modeling.layers.normalization.batch_normalization import BatchNormalization

WIDE = (4, 32, 32, 16)
"""Inputs large enough for the fast way."""


class Doubled(Conv2D):
    def call(self, inputs, training=None):
        return 2.0 * super().call(inputs, training=training)


class Shifted(BatchNormalization):
    def call(self, inputs, training=None):
        return super().call(inputs, training=training) + 3.0


class Unchanged(Conv2D):
    """A subclass of no effect: whether it has one cannot be seen from outside."""


@pytest.fixture
def choices(monkeypatch):
    """What each call of the fast way returned."""
    found, original = [], kernels.normalized_convolution_1x1.fast

    def spy(*args, **kwargs):
        found.append(original(*args, **kwargs))
        return found[-1]

    monkeypatch.setattr(kernels.normalized_convolution_1x1, "fast", spy)
    return found


def layers(conv=None, conv_class=Conv2D, norm_class=BatchNormalization, **settings):
    pair = conv_class(**{"filters": 96, "kernel_size": 1, "use_bias": False, **(conv or {})})
    norm = norm_class(
        momentum=0.9, gamma_initializer="random_uniform", beta_initializer="normal", **settings
    )
    norm.build(pair.compute_output_shape(WIDE))
    pair.build(WIDE)
    return pair, norm


def images(seed=0):
    return ops.convert_to_tensor(
        np.random.RandomState(seed).normal(3.0, 2.0, WIDE).astype("float32")
    )


def losses(*layers):
    return [float(loss) for layer in layers for loss in layer.losses]


def compare(conv, norm, training, choices, is_fast):
    """Outputs, statistics and losses with those of one layer after the other."""
    x, before = images(), norm.get_weights()
    expected = norm(conv(x, training=training), training=training)
    statistics, penalties = norm.get_weights(), losses(conv, norm)
    norm.set_weights(before)
    outputs = conv_norm(conv, norm, x, training=training)
    # Rounding of float32 sums over some thousand numbers, several times.
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    for actual, like in zip(norm.get_weights(), statistics, strict=True):
        np.testing.assert_allclose(actual, like, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(losses(conv, norm), penalties, rtol=1e-5)
    is_tensorflow = keras.backend.backend() == "tensorflow"
    assert any(y is not None for y in choices) == (is_fast and is_tensorflow)


@pytest.mark.parametrize("settings", [{}, {"scale": False}, {"center": False}])
def test_in_one(settings, choices):
    compare(*layers(**settings), True, choices, is_fast=True)


@pytest.mark.parametrize(
    "conv",
    [
        {"use_bias": True},
        {"activation": "relu"},
        {"kernel_size": 3},
        {"groups": 2},
        {"filters": 4},
    ],
)
def test_one_after_the_other(conv, choices):
    compare(*layers(conv), True, choices, is_fast=False)


@pytest.mark.parametrize(
    "classes", [{"conv_class": Doubled}, {"norm_class": Shifted}, {"conv_class": Unchanged}]
)
def test_a_subclass_is_called(classes, choices):
    compare(*layers(**classes), True, choices, is_fast=False)


def test_an_activity_regularizer_counts(choices):
    penalty = keras.regularizers.L1(1e-3)
    conv, norm = layers({"activity_regularizer": penalty})
    compare(conv, norm, True, choices, is_fast=False)
    assert losses(conv)[0] > 0.0
    conv, norm = layers(activity_regularizer=penalty)
    compare(conv, norm, True, choices, is_fast=False)
    assert losses(norm)[0] > 0.0


def test_layers_that_are_not_built_yet_are_built(choices):
    conv, norm = Conv2D(96, 1, use_bias=False), BatchNormalization()
    assert conv_norm(conv, norm, images(), training=True).shape == (4, 32, 32, 96)
    assert conv.built and norm.built


def test_not_in_evaluation_and_not_frozen(choices):
    conv, norm = layers()
    compare(conv, norm, False, choices, is_fast=False)
    norm.trainable = False
    compare(conv, norm, True, choices, is_fast=False)


def test_a_run_can_do_without(choices):
    with kernels.FAST_KERNELS.scope(False):
        compare(*layers(), True, choices, is_fast=False)


@pytest.mark.parametrize("half", ["both", "conv", "norm"])
def test_not_in_half_precision(half, choices):
    policy = "mixed_bfloat16"
    conv, norm = layers(
        {"dtype": policy} if half != "norm" else None,
        **({"dtype": policy} if half != "conv" else {}),
    )
    expected = norm(conv(images(), training=True), training=True)
    outputs = conv_norm(conv, norm, images(), training=True)
    assert outputs.dtype == expected.dtype
    np.testing.assert_array_equal(ops.cast(outputs, "float32"), ops.cast(expected, "float32"))
