import types

from hortus.vision.weights import conventions
from hortus.vision.weights.catalog import KNOWN


def backbone(kind, **fields):
    """What of a backbone is looked at: its class's name, its fields, its normalisation."""
    norm = fields.pop("norm")
    cls = type(kind, (), {})
    item = cls()
    for name, value in fields.items():
        setattr(item, name, value)
    item.norm_act = types.SimpleNamespace(norm_epsilon=norm[1], activation_name=norm[0])
    return item


def mobilenet(padding="symmetric", epsilon=1e-5):
    return backbone(
        "MobileNet",
        model_id="MobileNetV2",
        padding=padding,
        norm=("relu", epsilon),
    )


def efficientnet(padding, epsilon):
    return backbone(
        "EfficientNet",
        model_id="b0",
        padding=padding,
        se_ratio=0.25,
        se_inner_activation="swish",
        norm=("silu", epsilon),
    )


def test_what_fits_is_not_told():
    assert conventions.notes(mobilenet(), "torchvision", "mobilenet_v2.pth") == ()


def test_another_padding_and_epsilon_are_told_with_both_values():
    padding, epsilon = conventions.notes(mobilenet("same", 0.001), "torchvision", "a.pth")
    assert padding == (
        "task.model.backbone.mobilenet.padding is 'same', but the weights were trained with "
        "'symmetric' (torchvision/mobilenet_v2)"
    )
    assert "norm_activation.norm_epsilon is 0.001" in epsilon
    assert "1e-05" in epsilon


def test_converted_weights_are_known_by_their_name():
    same, symmetric = efficientnet("same", 1e-3), efficientnet("symmetric", 1e-5)
    assert not conventions.notes(same, "timm", "tf_efficientnet_b0.safetensors")
    assert conventions.notes(symmetric, "timm", "tf_efficientnet_b0.safetensors")
    # A name that does not tell leaves both possible.
    assert not conventions.notes(same, "timm", "model.safetensors")
    assert not conventions.notes(symmetric, "timm", "model.safetensors")
    assert conventions.notes(efficientnet("same", 1e-5), "timm", "model.safetensors")


def test_models_that_nobody_knows_are_left_alone():
    item = mobilenet("same")
    item.model_id = "MobileNetV1"
    assert conventions.notes(item, "torchvision", "a.pth") == ()


def test_known_models_do_not_differ_from_themselves():
    known = KNOWN["torchvision/mobilenet_v2"]
    assert conventions.differences(mobilenet(), known) == []
