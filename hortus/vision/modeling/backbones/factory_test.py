import dataclasses

import keras
import pytest

from hortus import hyperparams
from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.configs import common
from hortus.vision.modeling import backbones
from hortus.vision.modeling.backbones import factory

IMAGES = keras.layers.InputSpec(shape=(None, 32, 32, 3))


@dataclasses.dataclass
class Tiny(hyperparams.Config):
    width: int = 4


@dataclasses.dataclass
class BackboneAndTiny(backbone_configs.Backbone):
    tiny: Tiny = dataclasses.field(default_factory=Tiny)


@factory.register_backbone_builder("tiny")
def build_tiny(input_specs, backbone_config, norm_activation_config, l2_regularizer=None):
    inputs = keras.Input(input_specs.shape[1:])
    x = keras.layers.Conv2D(
        backbone_config.get().width,
        3,
        strides=2,
        padding="same",
        activation=norm_activation_config.activation,
        kernel_regularizer=l2_regularizer,
    )(inputs)
    model = keras.Model(inputs, {"1": x})
    model.output_specs = {"1": x.shape}
    return model


def test_a_backbone_of_ones_own_joins_by_subclassing_the_config():
    config = BackboneAndTiny(type="tiny", tiny=Tiny(width=5))
    model = factory.build_backbone(
        IMAGES, config, common.NormActivation(), keras.regularizers.L2(0.1)
    )
    assert model.output_specs == {"1": (None, 16, 16, 5)}
    assert len(model.losses) == 1


def test_arguments_may_be_given_by_name():
    model = factory.build_backbone(
        input_specs=IMAGES,
        backbone_config=BackboneAndTiny(type="tiny"),
        norm_activation_config=common.NormActivation(),
        l2_regularizer=None,
    )
    assert not model.losses


def test_an_unknown_type_names_what_is_near():
    config = hyperparams.Config({"type": "resnt"})
    with pytest.raises(KeyError, match="unknown backbone 'resnt'; did you mean 'resnet'"):
        factory.build_backbone(IMAGES, config, common.NormActivation())


def test_a_taken_key_is_refused():
    with pytest.raises(KeyError, match="registered twice"):
        factory.register_backbone_builder("tiny")(build_tiny)


def test_every_type_of_the_config_can_be_built():
    ours = {field.name for field in dataclasses.fields(backbone_configs.Backbone)} - {"type"}
    assert ours - {"resnet_3d", "resnet_3d_rs"} == set(factory.registered_backbones()) - {"tiny"}


def test_every_backbone_can_be_imported_by_its_class():
    names = ("ResNet", "DilatedResNet", "EfficientNet", "MobileDet", "MobileNet", "ResNetUNet")
    names += ("RevNet", "SpineNet", "SpineNetMobile", "VisionTransformer", "Backbone")
    for name in names:
        assert issubclass(getattr(backbones, name), backbones.Backbone)
    assert set(names) <= set(dir(backbones))
    with pytest.raises(AttributeError, match="no attribute 'AlexNet'"):
        _ = backbones.AlexNet
