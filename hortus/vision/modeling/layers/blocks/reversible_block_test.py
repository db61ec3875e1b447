import numpy as np
import pytest
from keras import ops

from hortus.vision.modeling.layers.blocks.reversible_block import ResidualInner, ReversibleBlock


def features(channels=6):
    return np.random.RandomState(0).normal(size=(2, 8, 8, channels)).astype("float32")


@pytest.mark.parametrize("use_bottleneck", [False, True])
def test_what_goes_in_can_be_computed_from_what_comes_out(use_bottleneck):
    x = features(8)
    block = ReversibleBlock(1 if use_bottleneck else 4, use_bottleneck=use_bottleneck)
    y1, y2 = ops.split(block(x), 2, axis=-1)
    x2 = y2 - block.g(y1)
    x1 = y1 - block.f(x2)
    # float32 rounding of numbers of about 1.
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.concatenate([x1, x2], axis=-1)), x, atol=1e-5
    )


def test_a_change_of_shape_pools_and_fills_up_with_zeros():
    x = features(4)
    block = ReversibleBlock(5, strides=2, norm_first=True)
    block.build(x.shape)
    for weight in block.weights:
        if weight.name == "kernel":
            weight.assign(np.zeros(weight.shape, "float32"))
    outputs = ops.convert_to_numpy(block(x))
    assert outputs.shape == block.compute_output_shape(x.shape) == (2, 4, 4, 10)
    pooled = x.reshape(2, 4, 2, 4, 2, 4).mean((2, 4))
    expected = np.zeros_like(outputs)
    expected[..., 1:3] = pooled[..., :2]
    expected[..., 6:8] = pooled[..., 2:]
    # A mean of four numbers.
    np.testing.assert_allclose(outputs, expected, atol=1e-6)


def test_weights_of_the_inner_part():
    plain, bottleneck = ResidualInner(4), ResidualInner(4, use_bottleneck=True, norm_first=True)
    plain.build((None, 8, 8, 3)), bottleneck.build((None, 8, 8, 3))
    kernels = [tuple(w.shape) for w in plain.weights if w.name == "kernel"]
    assert kernels == [(3, 3, 3, 4), (3, 3, 4, 4)]
    assert [tuple(w.shape) for w in plain.weights if w.name == "gamma"] == [(4,)]
    kernels = [tuple(w.shape) for w in bottleneck.weights if w.name == "kernel"]
    assert kernels == [(1, 1, 3, 4), (3, 3, 4, 4), (1, 1, 4, 16)]
    assert [tuple(w.shape) for w in bottleneck.weights if w.name == "gamma"] == [(3,), (4,), (4,)]


def test_config_round_trip():
    block = ReversibleBlock(5, strides=2, norm_first=True, name="block")
    again = ReversibleBlock.from_config(block.get_config())
    assert again.get_config() == block.get_config()
    block.build((None, 8, 8, 4)), again.build((None, 8, 8, 4))
    assert [w.path for w in again.weights] == [w.path for w in block.weights]
