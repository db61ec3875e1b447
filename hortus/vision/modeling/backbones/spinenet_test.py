import keras
import numpy as np
import pytest

from hortus.testing import backbones as testing
from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.modeling.backbones import spinenet


def images(side):
    return keras.layers.InputSpec(shape=(None, side, side, 3))


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="takes minutes to compile; its layers are tested there"
)
def test_contract(tmp_path):
    config = backbone_configs.Backbone(type="spinenet")
    config.spinenet.override({"model_id": "49S", "stochastic_depth_drop_rate": 0.2})
    # The coarsest level needs 128 pixels.
    testing.check(config, tmp_path, sizes=(128, 256))


def test_levels_are_those_asked_for_and_the_rest_is_left_out():
    with keras.StatelessScope(initialize_variables=False):
        fine = spinenet.SpineNet("49S", images(128), min_level=2, max_level=3)
        coarse = spinenet.SpineNet("49S", images(128), min_level=5, max_level=7)
    assert {level: shape[1] for level, shape in fine.output_specs.items()} == {"2": 32, "3": 16}
    assert {level: shape[1] for level, shape in coarse.output_specs.items()} == {
        "5": 4,
        "6": 2,
        "7": 1,
    }
    names = {layer.name for layer in fine.layers}
    assert {"block4", "block9", "block12", "block16"} <= names
    assert not {"block10", "block11", "block13", "block14", "block15"} & names
    names = {layer.name for layer in coarse.layers}
    assert {"block10", "block15"} <= names  # block 10 only feeds the output of its level
    assert not {"block12", "block16"} & names


def test_blocks_are_dropped_more_often_the_later_they_come():
    with keras.StatelessScope(initialize_variables=False):
        model = spinenet.SpineNet("96", images(128), min_level=2, stochastic_depth_drop_rate=0.16)
    rates = {
        layer.name: layer.stochastic_depth_drop_rate
        for layer in model.layers
        if hasattr(layer, "stochastic_depth_drop_rate")
    }
    assert rates["stem_block2_2"] == 0.0
    for index in range(1, 17):
        for repeat in (1, 2):
            assert rates[f"block{index}_{repeat}"] == pytest.approx(0.01 * index)


def test_any_size_may_come_where_the_specs_leave_it_open_on_tensorflow():
    model = spinenet.SpineNet("49S")
    outputs = model(np.zeros((1, 128, 256, 3), "float32"))
    assert {level: tuple(x.shape[1:3]) for level, x in outputs.items()} == {
        str(level): (128 // 2**level, 256 // 2**level) for level in range(3, 8)
    }


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"one of .*'49S'.*got '50'"):
        spinenet.SpineNet("50")
    with pytest.raises(ValueError, match="multiples of 128 for SpineNet, got 160x160"):
        spinenet.SpineNet("49S", images(160))
    with pytest.raises(ValueError, match=r"from 2 to 7.*min_level=1"):
        spinenet.SpineNet("49S", images(128), min_level=1)
