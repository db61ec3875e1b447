from hortus.vision.configs import backbones, model_ids
from hortus.vision.modeling.backbones import (
    dilated_resnet,
    efficientnet,
    mobiledet,
    mobilenet_specs,
    resnet,
    revnet,
    spinenet,
    spinenet_mobile,
    vit,
)


def test_the_sizes_are_those_of_the_models():
    assert tuple(resnet.BLOCKS) == model_ids.RESNET
    assert tuple(dilated_resnet.DEPTHS) == model_ids.DILATED_RESNET
    assert tuple(revnet.BLOCKS) == model_ids.REVNET
    assert tuple(efficientnet.SCALES) == model_ids.EFFICIENTNET
    assert tuple(mobilenet_specs.ARCHITECTURES) == model_ids.MOBILENET
    assert tuple(mobiledet.ARCHITECTURES) == model_ids.MOBILEDET
    assert tuple(spinenet.SIZES) == model_ids.SPINENET
    assert tuple(spinenet_mobile.SIZES) == model_ids.SPINENET_MOBILE
    assert tuple(vit.SIZES) == model_ids.VIT


def test_every_backbone_refuses_a_size_that_it_does_not_have():
    silent = []
    for name in backbones.Backbone.choices():
        config = getattr(backbones.Backbone(), name)
        field = "model_name" if name == "vit" else "model_id"
        setattr(config, field, 11 if isinstance(getattr(config, field), int) else "11")
        if not any(message.startswith(f"{field} must be one of") for message in config.check()):
            silent.append(name)
    assert silent == []
