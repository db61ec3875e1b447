"""Pretrained models that are known: who made them, and what of a config makes our model the same.

Weights want the padding, the epsilon, the activations and the shortcuts that they were trained
with. `settings` is what to set in `task.model` of an image classification experiment, or in its
`backbone` and `norm_activation` elsewhere.
"""

import dataclasses
from typing import Any, Optional

_TORCHVISION, _TIMM = "torchvision", "timm"


@dataclasses.dataclass(frozen=True)
class Preprocessing:
    """What the weights expect of images.

    Attributes:
        size: side of the square images, in pixels.
        mean: of each channel, for values from 0 to 1.
        std: of each channel, for values from 0 to 1.
    """

    size: int = 224
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)


_IMAGENET = Preprocessing()
_HALF = Preprocessing(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))


@dataclasses.dataclass(frozen=True)
class KnownModel:
    """A model whose weights can be taken over.

    Attributes:
        name: `torchvision/mobilenet_v2`, `timm/resnet50`.
        backbone: type of our backbone.
        fields: of its config.
        norm: fields of `norm_activation`.
        preprocessing: what the weights expect of images.
        parameters: in millions, the classifier of 1000 classes included.
        licence: of the weights as published.
        accuracy: top-1 on ImageNet-1k in percent, as published for the first weights under this
            name; None where weights under one name differ.
    """

    name: str
    backbone: str
    fields: dict[str, Any]
    norm: dict[str, Any]
    preprocessing: Preprocessing
    parameters: float
    licence: str
    accuracy: Optional[float] = None

    @property
    def settings(self) -> dict[str, Any]:
        """What to set in `task.model`."""
        found: dict[str, Any] = {
            "backbone": {"type": self.backbone, self.backbone: dict(self.fields)},
            "dropout_rate": 0.0,
        }
        if self.norm:
            found["norm_activation"] = dict(self.norm)
        return found


def _norm(activation: str, epsilon: float) -> dict[str, Any]:
    return {"activation": activation, "norm_epsilon": epsilon}


def _models() -> list[KnownModel]:
    bsd, apache = "BSD-3-Clause", "Apache-2.0"
    models = []
    fields: dict[str, Any]
    accuracy: Optional[float]

    plain = {"padding": "symmetric", "project_every_level": False}
    for depth, size, accuracy in (
        (18, 11.7, 69.8),
        (34, 21.8, 73.3),
        (50, 25.6, 76.1),
        (101, 44.5, 77.4),
        (152, 60.2, 78.3),
    ):
        for origin, licence in ((_TORCHVISION, bsd), (_TIMM, apache)):
            models.append(
                KnownModel(
                    f"{origin}/resnet{depth}",
                    "resnet",
                    {"model_id": depth, **plain},
                    _norm("relu", 1e-5),
                    _IMAGENET,
                    size,
                    licence,
                    accuracy if origin == _TORCHVISION else None,
                )
            )
    recipe = {
        **plain,
        "stem_type": "v1",
        "se_ratio": 0.25,
        "resnetd_shortcut": True,
        "pool_unstrided_shortcut": False,
        "replace_stem_max_pool": True,
    }
    for depth, size in ((50, 35.7), (101, 63.6), (152, 86.6), (200, 93.2)):
        models.append(
            KnownModel(
                f"{_TIMM}/resnetrs{depth}",
                "resnet",
                {"model_id": depth, **recipe},
                _norm("relu", 1e-5),
                _IMAGENET,
                size,
                apache,
            )
        )

    for name, model_id, epsilon, size, licence, accuracy in (
        (f"{_TORCHVISION}/mobilenet_v2", "MobileNetV2", 1e-5, 3.5, bsd, 71.9),
        (f"{_TORCHVISION}/mobilenet_v3_large", "MobileNetV3Large", 1e-3, 5.5, bsd, 74.0),
        (f"{_TORCHVISION}/mobilenet_v3_small", "MobileNetV3Small", 1e-3, 2.5, bsd, 67.7),
        (f"{_TIMM}/mobilenetv2_100", "MobileNetV2", 1e-5, 3.5, apache, None),
        (f"{_TIMM}/mobilenetv3_large_100", "MobileNetV3Large", 1e-5, 5.5, apache, None),
        (f"{_TIMM}/mobilenetv4_conv_small", "MobileNetV4ConvSmall", 1e-5, 3.8, apache, None),
        (f"{_TIMM}/mobilenetv4_conv_medium", "MobileNetV4ConvMedium", 1e-5, 9.7, apache, None),
        (f"{_TIMM}/mobilenetv4_conv_large", "MobileNetV4ConvLarge", 1e-5, 32.6, apache, None),
    ):
        fields = {"model_id": model_id, "padding": "symmetric"}
        if "V3" in model_id:  # the others have no squeeze-excite
            fields["se_gating_activation"] = "exact_hard_sigmoid"
        norm = {"norm_epsilon": epsilon}
        models.append(
            KnownModel(name, "mobilenet", fields, norm, _IMAGENET, size, licence, accuracy)
        )
    models.append(
        KnownModel(
            f"{_TIMM}/tf_mobilenetv3_large_100",
            "mobilenet",
            {"model_id": "MobileNetV3Large", "se_gating_activation": "exact_hard_sigmoid"},
            {"norm_epsilon": 1e-3},
            _HALF,
            5.5,
            apache,
        )
    )

    excited = {"se_ratio": 0.25, "se_inner_activation": "swish"}
    for index, (side, size) in enumerate(
        ((224, 5.3), (240, 7.8), (260, 9.1), (300, 12.2), (380, 19.3), (456, 30.4), (528, 43.0))
    ):
        fields = {"model_id": f"b{index}", **excited}
        shown = dataclasses.replace(_IMAGENET, size=side)
        same, symmetric = {**fields}, {**fields, "padding": "symmetric"}
        # The three ways that such weights were trained, or converted from the authors'.
        for name, of_kind, epsilon, licence in (
            (f"{_TORCHVISION}/efficientnet_b{index}", symmetric, 1e-5, bsd),
            (f"{_TIMM}/efficientnet_b{index}", symmetric, 1e-5, apache),
            (f"{_TIMM}/tf_efficientnet_b{index}", same, 1e-3, apache),
        ):
            if name == f"{_TORCHVISION}/efficientnet_b{index}" and index >= 5:
                epsilon = 1e-3
            models.append(
                KnownModel(
                    name, "efficientnet", of_kind, _norm("swish", epsilon), shown, size, licence
                )
            )
    lite = KnownModel(
        "efficientnet-pytorch/efficientnet-lite0",
        "efficientnet",
        {"model_id": "b0"},
        _norm("relu6", 1e-3),
        _HALF,
        4.7,
        apache,
        75.1,
    )
    models += [lite, dataclasses.replace(lite, name=f"{_TIMM}/tf_efficientnet_lite0")]

    for name, model_name, size, licence, accuracy, shown in (
        (f"{_TORCHVISION}/vit_b_16", "vit-b16", 86.6, bsd, 81.1, _IMAGENET),
        (f"{_TORCHVISION}/vit_b_32", "vit-b32", 88.2, bsd, 75.9, _IMAGENET),
        (f"{_TORCHVISION}/vit_l_16", "vit-l16", 304.3, bsd, 79.7, _IMAGENET),
        (f"{_TIMM}/vit_tiny_patch16_224", "vit-ti16", 5.7, apache, None, _HALF),
        (f"{_TIMM}/vit_small_patch16_224", "vit-s16", 22.1, apache, None, _HALF),
        (f"{_TIMM}/vit_base_patch16_224", "vit-b16", 86.6, apache, None, _HALF),
        (f"{_TIMM}/vit_large_patch16_224", "vit-l16", 304.3, apache, None, _HALF),
        (f"{_TIMM}/deit_tiny_patch16_224", "vit-ti16", 5.7, apache, 72.2, _IMAGENET),
        (f"{_TIMM}/deit_small_patch16_224", "vit-s16", 22.1, apache, 79.9, _IMAGENET),
        (f"{_TIMM}/deit_base_patch16_224", "vit-b16", 86.6, apache, 81.8, _IMAGENET),
    ):
        fields = {"model_name": model_name, "activation": "gelu", "representation_size": 0}
        models.append(KnownModel(name, "vit", fields, {}, shown, size, licence, accuracy))
    return models


KNOWN: dict[str, KnownModel] = {model.name: model for model in _models()}
"""By name."""
