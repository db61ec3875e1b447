import keras
import numpy as np
from keras import ops

from hortus.vision.modeling.layers.blocks.convnext_block import ConvNeXtBlock


def features():
    return np.random.RandomState(0).normal(size=(2, 6, 6, 8)).astype("float32")


def test_it_starts_as_the_identity():
    block, x = ConvNeXtBlock(8, kernel_size=3), features()
    # The residual is a millionth of numbers below 1.
    np.testing.assert_allclose(ops.convert_to_numpy(block(x)), x, atol=1e-5)


def test_shares_of_the_width():
    block = ConvNeXtBlock(8, kernel_size=5, se_ratio=0.25)
    block.build((None, None, None, 8))
    shapes = {w.path.split("/", 1)[1]: tuple(w.shape) for w in block.weights}
    assert shapes["depthwise/kernel"] == (5, 5, 8, 1)
    assert shapes["expand/kernel"] == (8, 32)
    assert shapes["squeeze_excitation/reduce/kernel"] == (1, 1, 32, 8)
    assert shapes["project/kernel"] == (32, 8)
    assert shapes["layer_scale/scale"] == (1, 1, 1, 8)
    plain = ConvNeXtBlock(8, se_ratio=0.0)
    plain.build((None, None, None, 8))
    assert not [w.path for w in plain.weights if "squeeze" in w.path]


def test_an_example_is_skipped_by_chance_in_training_only():
    keras.utils.set_random_seed(0)
    block = ConvNeXtBlock(8, layer_scale_init_value=1.0, stochastic_depth_drop_rate=0.5)
    x = np.repeat(features()[:1], 64, axis=0)
    changed = np.abs(ops.convert_to_numpy(block(x, training=True)) - x).max((1, 2, 3)) > 0
    # 64 fair coins show so few or so many heads less than once in a million times.
    assert 10 < changed.sum() < 54
    evaluated = ops.convert_to_numpy(block(x, training=False))
    assert (np.abs(evaluated - x).max((1, 2, 3)) > 0).all()


def test_config_round_trip():
    block = ConvNeXtBlock(8, kernel_size=3, kernel_regularizer="l2", name="block")
    again = ConvNeXtBlock.from_config(block.get_config())
    assert again.get_config() == block.get_config()
    block.build((None, 6, 6, 8)), again.build((None, 6, 6, 8))
    assert [w.path for w in again.weights] == [w.path for w in block.weights]
    assert len(again.losses) == len(block.losses) == 5
