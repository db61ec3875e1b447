"""Backbones: images to features by level. `factory` builds them from a config.

The classes can be had from here too; a module is imported when its class is used:

    from hortus.vision.modeling import backbones

    backbone = backbones.ResNet(50)
"""

import importlib
from typing import Any

from hortus.vision.modeling.backbones import factory

_MODULES = {
    "Backbone": "backbone",
    "DilatedResNet": "dilated_resnet",
    "EfficientNet": "efficientnet",
    "MobileDet": "mobiledet",
    "MobileNet": "mobilenet",
    "ResNet": "resnet",
    "ResNetUNet": "resnet_unet",
    "RevNet": "revnet",
    "SpineNet": "spinenet",
    "SpineNetMobile": "spinenet_mobile",
    "VisionTransformer": "vit",
}

__all__ = ["factory", *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
