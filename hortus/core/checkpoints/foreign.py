"""Weights of other programs: which of their tensors is which weight of a model.

A model says so itself, in a method `foreign_weights(source, module)`, since only its authors know
both sides. It returns a `Translation`, or None where it knows nothing of such a source.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Optional

import numpy as np

Convert = Callable[[np.ndarray], np.ndarray]


def as_is(value: np.ndarray) -> np.ndarray:
    """The conversion that changes nothing."""
    return value


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a weight comes from.

    Attributes:
        key: the tensor's name in the file.
        convert: makes the weight's value of the tensor's: another order of axes, a part of it.
    """

    key: str
    convert: Convert = as_is

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the weight, from that of the tensor."""
        if self.convert is as_is:
            return tuple(shape)
        # Takes no memory: a single number, seen everywhere.
        return self.convert(np.broadcast_to(np.float32(0), shape)).shape


@dataclasses.dataclass(frozen=True)
class Translation:
    """What a module takes from a file.

    Attributes:
        origins: name of each weight, within the module, to where it comes from.
        scope: names of all tensors of the file that belong to the module, used or not.
        origin: what the file was found to be, for the report, as "torchvision MobileNetV2".
        notes: what the user should know, such as how the model differs from the file's.
        optional: names of weights that such a file may lack; they stay as they are.
    """

    origins: Mapping[str, Origin]
    scope: tuple[str, ...]
    origin: str = ""
    notes: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()

    def unused(self) -> list[str]:
        """The tensors that no weight takes."""
        used = {origin.key for origin in self.origins.values()}
        return [key for key in self.scope if key not in used]


def translate(model: Any, source: Any, module: str) -> Optional[Translation]:
    """Asks a model what `module`, or "all", takes from `source`; None if it cannot tell."""
    ask = getattr(model, "foreign_weights", None)
    return None if ask is None else ask(source, module)
