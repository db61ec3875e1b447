"""Whether an export says the same as its model."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from hortus.vision.serving.formats import Runtime
from hortus.vision.serving.images import Picture
from hortus.vision.serving.services.differences import LIMIT
from hortus.vision.serving.services.service import Service


@dataclasses.dataclass(frozen=True)
class Parity:
    """How far an export is from its model.

    A difference is that of two numbers, divided by the largest number of the model's output where
    this is more than 1: for logits of an ordinary size, and for scores, it is the plain difference,
    and for boxes it is a share of the image.
    """

    differences: dict[str, float]
    """The largest, by output."""
    images: int
    """Number of images that were compared."""

    @property
    def largest(self) -> float:
        """Of all outputs."""
        return max(self.differences.values(), default=float("inf"))

    @property
    def holds(self) -> bool:
        """Whether none is above the limit."""
        return bool(self.largest <= LIMIT)

    def __str__(self) -> str:
        noun = "image" if self.images == 1 else "images"
        shown = ", ".join(f"{name} {value:.1e}" for name, value in self.differences.items())
        return f"largest difference to the model on {self.images} {noun}: {shown}"


def compare(
    service: Service,
    expected: Sequence[Mapping[str, np.ndarray]],
    runtime: Runtime,
    pictures: Sequence[Picture],
) -> Parity:
    """Runs an export on pictures, one by one and two at once, and compares it with the model.

    Args:
        service: of the task.
        expected: the model's outputs for the pixels of each picture.
        runtime: the export.
        pictures: what to try it on.
    """
    differences: dict[str, float] = {}
    for number, (outputs, picture) in enumerate(zip(expected, pictures, strict=True)):
        # The first one twice, to see that a batch may have any size.
        copies = 2 if number == 0 else 1
        found = runtime.run(np.stack([picture.pixels] * copies))
        for copy in range(copies):
            here = {name: value[copy] for name, value in found.items()}
            for name, value in service.differences(outputs, here).items():
                differences[name] = max(differences.get(name, 0.0), value)
    return Parity(differences, len(pictures))
