"""OneOfConfig: a choice between sub-configs."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Optional

from hortus.hyperparams.base_config import Config
from hortus.hyperparams.errors import did_you_mean


@dataclasses.dataclass
class OneOfConfig(Config):
    """A config of which one branch counts: the one that `type` names.

        @dataclasses.dataclass
        class Backbone(hyperparams.OneOfConfig):
            type: Optional[str] = 'resnet'
            resnet: ResNet = ResNet()
            vit: VisionTransformer = VisionTransformer()

    To add a choice, subclass it and add a field.
    """

    type: Optional[str] = None
    """The name of the branch to use; null for none."""

    def get(self, path: Optional[str] = None, default: Any = None) -> Any:
        """The chosen sub-config, None when nothing is chosen; with a path, as in Config."""
        if path is not None:
            return super().get(path, default)
        return None if self.type is None else self.__dict__[self.type]

    @classmethod
    def choices(cls) -> list[str]:
        """What `type` can name."""
        return [name for name in cls._fields() if name != "type"]

    @classmethod
    def _needs(cls, key: str) -> bool:
        return False  # a branch can be dropped; who chooses it has to see to it

    def _visible_keys(self) -> list[str]:
        return ["type"] if self.type is None else ["type", self.type]

    def _objection(self, key: str, value: Any, siblings: Mapping[str, Any]) -> Optional[str]:
        if key != "type" or value is None:
            return None
        choices = [name for name in (*self._keys(), *siblings) if name != "type"]
        if value in choices:
            return None
        return f"{value!r} is no choice of {type(self).__name__}.{did_you_mean(value, choices)}"
