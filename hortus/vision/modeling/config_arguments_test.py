"""A config's fields are the arguments of what it builds, for every backbone, decoder and head."""

import dataclasses

import keras
import pytest

from hortus import hyperparams
from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.configs import common
from hortus.vision.configs import decoders as decoder_configs
from hortus.vision.configs import heads as head_configs
from hortus.vision.modeling import config_arguments, heads
from hortus.vision.modeling.backbones import (
    dilated_resnet,
    efficientnet,
    factory,
    mobiledet,
    mobilenet,
    resnet,
    resnet_unet,
    revnet,
    spinenet,
    spinenet_mobile,
    vit,
)
from hortus.vision.modeling.backbones.backbone import IMAGES
from hortus.vision.modeling.decoders import aspp, fpn, nasfpn
from hortus.vision.modeling.decoders.builder import MODEL_FIELDS
from hortus.vision.modeling.layers.blocks.block import Block
from hortus.vision.modeling.layers.configurable import argument_names
from hortus.vision.modeling.layers.normalization.norm_act import NormAct

SHARED = {
    "input_specs",
    "norm_act",
    "kernel_initializer",
    "kernel_regularizer",
    "bias_regularizer",
}
"""Arguments that do not come from the config of a backbone, decoder or head."""

BACKBONES = {
    "dilated_resnet": dilated_resnet.DilatedResNet,
    "efficientnet": efficientnet.EfficientNet,
    "mobiledet": mobiledet.MobileDet,
    "mobilenet": mobilenet.MobileNet,
    "resnet": resnet.ResNet,
    "resnet_unet": resnet_unet.ResNetUNet,
    "revnet": revnet.RevNet,
    "spinenet": spinenet.SpineNet,
    "spinenet_mobile": spinenet_mobile.SpineNetMobile,
    "vit": vit.VisionTransformer,
}
DECODERS = {"aspp": aspp.ASPP, "fpn": fpn.FPN, "nasfpn": nasfpn.NASFPN}

ONLY_IN_PYTHON = {
    # The existing system has no field for it either.
    "mobilenet": {"regularize_depthwise"},
    # What is different in PyTorch's ResNets, whose weights only the plain ResNet takes over.
    "dilated_resnet": {"project_every_level", "pool_unstrided_shortcut"},
    "resnet_unet": {"padding", "project_every_level", "pool_unstrided_shortcut"},
}


def fields(config):
    return {f.name for f in dataclasses.fields(config) if not f.metadata.get("inert")}


def branches(config):
    """{type: class of the config} of a OneOfConfig."""
    found = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    return {name: type(one) for name, one in found.items() if isinstance(one, hyperparams.Config)}


def own_arguments(cls):
    return set(argument_names(cls)) - SHARED


@pytest.mark.parametrize("kind", sorted(branches(backbone_configs.Backbone())))
def test_fields_of_backbones(kind):
    names = fields(branches(backbone_configs.Backbone())[kind])
    if kind == "vit":  # its size has a name, or is told by a config of its own
        names = names - {"model_name", "transformer"} | fields(backbone_configs.Transformer)
    of_norms = names & set(config_arguments.NORM_FIELDS)
    assert of_norms <= set(NormAct()._arguments())
    wanted = own_arguments(BACKBONES[kind])
    assert names - of_norms | ONLY_IN_PYTHON.get(kind, set()) == wanted


@pytest.mark.parametrize("kind", sorted(branches(decoder_configs.Decoder())))
def test_fields_of_decoders(kind):
    names = fields(branches(decoder_configs.Decoder())[kind])
    wanted = own_arguments(DECODERS[kind]) - set(MODEL_FIELDS) if kind in DECODERS else set()
    assert names == wanted


@pytest.mark.parametrize(
    ("config", "cls", "of_model"),
    [
        (head_configs.SegmentationHead, heads.SegmentationHead, {"num_classes"}),
        (head_configs.MaskScoringHead, heads.MaskScoring, {"num_classes"}),
        (head_configs.MaskHead, heads.MaskHead, {"num_classes"}),
        (
            head_configs.RPNHead,
            heads.RPNHead,
            {"min_level", "max_level", "num_anchors_per_location"},
        ),
        (
            head_configs.RetinaNetHead,
            heads.RetinaNetHead,
            {
                "min_level",
                "max_level",
                "num_classes",
                "num_anchors_per_location",
                "num_params_per_anchor",
            },
        ),
        (head_configs.DetectionHead, heads.DetectionHead, {"num_classes"}),
    ],
)
def test_fields_of_heads(config, cls, of_model):
    """`of_model` are arguments that the model knows."""
    of_layers = set(argument_names(Block))
    names = fields(config)
    if config is head_configs.DetectionHead:
        names.remove("cascade_class_ensemble")  # of the model, which has several such heads
    assert names == set(argument_names(cls)) - of_layers - of_model


@pytest.mark.parametrize("kind", sorted(BACKBONES))
def test_every_field_reaches_the_class(kind, monkeypatch):
    """Each field, set to a value of its own, is what the class is called with."""
    config = backbone_configs.Backbone(type=kind)
    if kind == "vit":
        config.vit.model_name = ""
    expected = {}
    for part in (config.get(), getattr(config.get(), "transformer", None)):
        for name in fields(part) - {"transformer", "model_name"} if part else ():
            expected[name] = sentinel = object()
            object.__setattr__(part, name, sentinel)
    seen = {}
    cls = BACKBONES[kind]
    monkeypatch.setattr(cls, "__new__", lambda cls, **arguments: seen.update(arguments))
    regularizer = keras.regularizers.L2(0.1)
    monkeypatch.setattr(
        config_arguments.NormAct,
        "from_config",
        classmethod(lambda cls, config, **changes: seen.update(changes) or "norms"),
    )
    factory.build_backbone(IMAGES, config, common.NormActivation(), regularizer)
    if kind != "vit":  # layer normalisation and GELU are the architecture's own
        expected["norm_act"] = "norms"
    expected |= {"input_specs": IMAGES, "kernel_regularizer": regularizer}
    assert seen == expected


def test_fields_without_effect_stay_out():
    config = backbone_configs.SpineNetMobile()
    assert "use_keras_upsampling_2d" not in config_arguments.field_values(config)
