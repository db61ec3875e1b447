"""What holds for every block that can be imported from the package."""

import importlib
import inspect
import pathlib

import keras
import numpy as np
import pytest

from hortus.vision.modeling import layers

# Arguments of the block, and channels of its output, for six channels of input.
BLOCKS = {
    "ResidualBlock": ({"filters": 4, "use_projection": True, "strides": 2, "se_ratio": 0.5}, 4),
    "BottleneckBlock": ({"filters": 2, "use_projection": True, "resnetd_shortcut": True}, 8),
    "InvertedBottleneckBlock": (
        {"in_filters": 6, "out_filters": 6, "expand_ratio": 2, "se_ratio": 0.25},
        6,
    ),
    "UniversalInvertedBottleneckBlock": (
        {"in_filters": 6, "out_filters": 8, "expand_ratio": 2, "start_kernel_size": 3},
        8,
    ),
    "DepthwiseSeparableConvBlock": ({"filters": 5, "strides": 2}, 5),
    "TuckerConvBlock": (
        {
            "in_filters": 6,
            "out_filters": 6,
            "input_compression_ratio": 0.5,
            "output_compression_ratio": 0.5,
        },
        6,
    ),
    "ConvNormAct": ({"filters": 5, "strides": 2}, 5),
    "ConvNeXtBlock": ({}, 6),
    "SqueezeExcitation": ({"in_filters": 6, "se_ratio": 0.5}, 6),
    "StochasticDepth": ({"rate": 0.5, "seed": 1}, 6),
    "LayerScale": ({"initial_value": 0.1}, 6),
    "MultiQueryAttentionBlock": ({"num_heads": 2, "key_dim": 4, "value_dim": 4}, 6),
    "ReversibleBlock": ({"filters": 3}, 6),
}
TOKENS = {
    "TransformerEncoderBlock": ({"num_heads": 2, "mlp_dim": 8}, 6),
    "MultiHeadSelfAttention": ({"num_heads": 2}, 6),
}


def make(name, arguments):
    cls = getattr(layers, name)
    if "filters" in inspect.signature(cls).parameters and "filters" not in arguments:
        arguments = {"filters": 6, **arguments}
    return cls(**arguments, name="block")


@pytest.mark.parametrize("name", [*BLOCKS, *TOKENS])
def test_shapes_and_config_round_trip(name):
    arguments, channels = {**BLOCKS, **TOKENS}[name]
    shape = (2, 6, 6, 6) if name in BLOCKS else (2, 5, 6)
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    block = make(name, arguments)
    outputs = keras.ops.convert_to_numpy(block(x))
    strides = arguments.get("strides", 1)
    inner = [side // strides for side in shape[1:-1]]
    assert outputs.shape == (2, *inner, channels)
    assert tuple(block.compute_output_shape(shape)) == outputs.shape
    assert np.all(np.isfinite(outputs))

    config = keras.saving.serialize_keras_object(block)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is type(block)
    assert again.get_config() == block.get_config()
    if not again.built:
        again.build(shape)
    assert [weight.path for weight in again.weights] == [weight.path for weight in block.weights]
    again.set_weights(block.get_weights())
    # The same weights through the same operations.
    np.testing.assert_allclose(keras.ops.convert_to_numpy(again(x)), outputs, rtol=1e-6, atol=1e-6)


def test_every_public_layer_is_exported():
    """A class or function registered for saving in this folder is among the names."""
    folder = pathlib.Path(layers.__file__).parent
    for path in folder.glob("*.py"):
        if path.name.endswith("_test.py") or path.stem in ("__init__", "activations"):
            continue
        module = importlib.import_module(f"{layers.__name__}.{path.stem}")
        for name, value in vars(module).items():
            is_own = getattr(value, "__module__", "") == module.__name__
            if is_own and isinstance(value, type) and issubclass(value, keras.layers.Layer):
                assert name.startswith("_") or getattr(layers, name) is value, name


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="no attribute 'Residual'"):
        _ = layers.Residual
    assert {"ResidualBlock", "StochasticDepth"} <= set(dir(layers))
