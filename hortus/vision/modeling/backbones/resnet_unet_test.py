import keras
import numpy as np
import pytest

from hortus.testing import backbones as testing
from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.modeling.backbones import resnet_unet

IMAGES = keras.layers.InputSpec(shape=(None, 64, 64, 3))
SMALL = {
    "upsample_repeats": [1, 2],
    "upsample_filters": [12, 8],
    "upsample_kernel_sizes": [3, 5],
}


def test_contract(tmp_path):
    config = backbone_configs.Backbone(type="resnet_unet")
    config.resnet_unet.override(
        {"model_id": 10, "depth_multiplier": 0.25, "stochastic_depth_drop_rate": 0.2} | SMALL
    )
    testing.check(config, tmp_path)


def test_levels_without_blocks_keep_the_features_of_resnet():
    with keras.StatelessScope(initialize_variables=False):
        model = resnet_unet.ResNetUNet(10, IMAGES, **SMALL)
    widths = {level: shape[-1] for level, shape in model.output_specs.items()}
    assert widths == {"2": 64, "3": 128, "4": 8, "5": 12}


def test_blocks_are_dropped_more_often_the_later_they_come():
    with keras.StatelessScope(initialize_variables=False):
        model = resnet_unet.ResNetUNet(10, IMAGES, stochastic_depth_drop_rate=0.7, **SMALL)
    rates = {
        layer.name: round(layer.stochastic_depth_drop_rate, 6)
        for layer in model.layers
        if hasattr(layer, "stochastic_depth_drop_rate")
    }
    assert rates == {
        "level2_block1": 0.2,
        "level3_block1": 0.3,
        "level4_block1": 0.4,
        "level5_block1": 0.5,
        "up5_block1": 0.6,
        "up4_block1": 0.7,
        "up4_block2": 0.7,
    }


def test_images_of_odd_sizes_on_tensorflow():
    model = resnet_unet.ResNetUNet(10, depth_multiplier=0.25, **SMALL)
    outputs = model(np.zeros((1, 72, 50, 3), "float32"))
    sizes = {level: tuple(x.shape[1:3]) for level, x in outputs.items()}
    assert sizes == {"2": (18, 13), "3": (9, 7), "4": (5, 4), "5": (3, 2)}


def test_lists_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="equally long, 1 to 4 levels"):
        resnet_unet.ResNetUNet(10, IMAGES, **(SMALL | {"upsample_filters": [8]}))
    with pytest.raises(ValueError, match="1 to 4 levels"):
        resnet_unet.ResNetUNet(10, IMAGES, [1] * 5, [8] * 5, [3] * 5)
