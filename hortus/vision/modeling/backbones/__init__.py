"""Backbones: images to features by level. `factory` builds them from a config.

Each module registers its own; there is no list of them. The classes can be had from here too:

    from hortus.vision.modeling import backbones

    backbone = backbones.ResNet(50)
"""

from typing import Any

from hortus import registry
from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones.backbone import Backbone

__all__ = ["Backbone", "factory"]


def __getattr__(name: str) -> Any:
    if name[:1].isupper() and name in (found := _classes()):
        return found[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_classes()})


def _classes() -> dict[str, type[Backbone]]:
    """All backbones of the modules here, by name."""
    return {
        name: value
        for module in registry.import_all(__name__)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Backbone)
    }
