"""What every decoder must do, checked in one place.

    def test_contract(tmp_path):
        config = retinanet.RetinaNet({"decoder": {"type": "fpn", "fpn": {"num_filters": 16}}})
        testing.decoders.check(config, tmp_path)

A check that fails raises an AssertionError that says what was expected.
"""

import pathlib
import warnings
from typing import Any

import keras
import numpy as np
from keras import ops

from hortus.testing import backbones
from hortus.testing.open_sizes import call_with_open_sizes
from hortus.vision.modeling.decoders import factory

CHANNELS = {"2": 4, "3": 6, "4": 8, "5": 10}
"""Channels of the features that a decoder is given, by level."""


def check(
    model_config: Any,
    folder: pathlib.Path,
    *,
    size: tuple[int, int] = (128, 128),
    other_size: tuple[int, int] = (100, 140),
) -> None:
    """Runs all checks on the decoder that the config of a model chooses.

    Args:
        model_config: with `decoder`, `norm_activation`, `min_level` and `max_level`; the decoder's
            output must be a dict.
        folder: where a model may be saved.
        size: height and width of the images that the features could come from.
        other_size: likewise; better no multiples of the strides.
    """

    def build(size: tuple[int | None, int | None]) -> keras.Model:
        decoder = factory.build_decoder(specs(size), model_config, keras.regularizers.L2(1e-4))
        assert decoder is not None, "there is no decoder to check"
        return decoder

    inputs = features(size)
    model = build(size)
    check_shapes(model, size)
    check_shapes(build(other_size), other_size)
    check_any_size(build((None, None)), model, size, other_size)
    check_further_features(model, inputs)
    backbones.check_names(model, build(size))
    backbones.check_config_round_trip(model)
    backbones.check_file_round_trip(model, _needed(model, inputs), folder)
    backbones.check_training_differs(model, _needed(model, inputs))
    backbones.check_frozen(model, _needed(model, inputs))
    check_gradients(model, inputs)
    with backbones.mixed_bfloat16():
        backbones.check_mixed_precision(build(size), _needed(model, inputs))


def specs(size: tuple[int | None, int | None]) -> dict[str, Any]:
    """Shapes of a backbone's features for images of `size`, by level."""
    return {
        level: (None, *(side and -(-side // 2 ** int(level)) for side in size), channels)
        for level, channels in CHANNELS.items()
    }


def features(size: tuple[int, int], batch: int = 2) -> dict[str, np.ndarray]:
    """Random features of those shapes."""
    random = np.random.RandomState(0)
    return {
        level: random.normal(size=[batch, *map(int, shape[1:])]).astype("float32")
        for level, shape in specs(size).items()
    }


def check_shapes(model: keras.Model, size: tuple[int, int]) -> None:
    """Outputs are keyed by level as a string, of that level's size; `output_specs` say so."""
    outputs = model(features(size))
    assert isinstance(outputs, dict) and set(outputs) == set(model.output_specs)
    for level, spec in model.output_specs.items():
        found = tuple(outputs[level].shape)
        assert spec[0] is None and tuple(spec[1:]) == found[1:], (
            f"level {level}: output_specs say {spec}, the output is {found}"
        )
        sides = tuple(-(-side // 2 ** int(level)) for side in size)
        assert spec[1:3] == sides, f"level {level} of {size} px has shape {spec}"


def check_any_size(
    model: keras.Model, sized: keras.Model, size: tuple[int, int], other_size: tuple[int, int]
) -> None:
    """Built without sizes, a decoder does the same as one built for a size, at any size."""
    for weight, value in zip(model.weights, sized.weights, strict=True):
        weight.assign(value)
    backbones.assert_same(
        model(features(size), training=False), sized(features(size), training=False)
    )
    inputs = features(other_size)
    outputs = model(inputs, training=False)
    for level, output in outputs.items():
        sides = tuple(-(-side // 2 ** int(level)) for side in other_size)
        assert tuple(output.shape[1:3]) == sides, (
            f"level {level} of {other_size} px: {output.shape}"
        )
    backbones.assert_same(call_with_open_sizes(model, _needed(model, inputs)), outputs)


def check_further_features(model: keras.Model, inputs: dict[str, np.ndarray]) -> None:
    """Features that are not needed change nothing."""
    further = {**inputs, "2/depthwise": inputs["2"], "9": inputs["5"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backbones.assert_same(model(further, training=False), model(inputs, training=False))


def check_gradients(model: keras.Model, inputs: dict[str, np.ndarray]) -> None:
    """One step of gradient descent changes every trainable weight."""
    outputs = _Evaluated(model)(model.input)
    pooled = [ops.mean(outputs[name], axis=(1, 2)) for name in sorted(outputs)]
    trained = keras.Model(model.input, keras.layers.Concatenate()([*pooled, pooled[0]]))
    # Large steps, so that a small gradient shows beside a large weight.
    trained.compile(keras.optimizers.SGD(1e3), "mse", run_eagerly=backbones.eager())
    before = [backbones.value_of(w) for w in model.trainable_weights]
    batch = len(inputs["3"])
    targets = np.random.RandomState(1).normal(size=(batch, trained.output.shape[-1]))
    trained.train_on_batch(_needed(model, inputs), targets.astype("float32"))
    missed = [
        weight.path
        for weight, old in zip(model.trainable_weights, before, strict=True)
        if np.array_equal(backbones.value_of(weight), old)
    ]
    assert not missed, f"no gradient reaches {missed[:5]}"


def _needed(model: keras.Model, inputs: dict[str, np.ndarray]) -> Any:
    # A test of Keras' own making, such as training a model on the same input, wants no others.
    return {level: inputs[level] for level in model.input}


class _Evaluated(keras.layers.Layer):
    """A model in evaluation: in training, a bias before batch statistics has no gradient."""

    def __init__(self, model: keras.Model):
        super().__init__()
        self.model = model

    def call(self, inputs: Any) -> Any:
        return self.model(inputs, training=False)
