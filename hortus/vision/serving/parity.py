"""Whether an export says the same as its model."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from hortus.vision.serving.formats.format import Runtime
from hortus.vision.serving.images import Picture
from hortus.vision.serving.service import Service

LIMIT = 1e-4


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


def difference(expected: np.ndarray, found: np.ndarray) -> float:
    """The largest difference, see `Parity`; infinite where shapes differ or something is NaN."""
    if expected.shape != found.shape:
        return float("inf")
    if not expected.size:
        return 0.0
    expected, found = expected.astype(np.float64), found.astype(np.float64)
    largest = float(np.max(np.abs(expected - found)))
    return largest / max(1.0, float(np.max(np.abs(expected)))) if largest >= 0 else float("inf")


def detection_differences(
    expected: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """How far detections are apart; those whose scores are equal may come in any order.

    Args:
        expected: `detection_boxes` [n, 4], `detection_scores`, `detection_classes` [n] and
            `num_detections` of the model.
        found: the same of the export.
    """
    count, other = (int(np.ravel(each["num_detections"])[0]) for each in (expected, found))
    if count != other:
        return {"num_detections": float(abs(count - other))}
    boxes, boxes2 = (np.asarray(e["detection_boxes"][:count], float) for e in (expected, found))
    scores, scores2 = (np.asarray(e["detection_scores"][:count], float) for e in (expected, found))
    classes, classes2 = (np.asarray(e["detection_classes"][:count], int) for e in (expected, found))
    side = max(1.0, float(np.abs(boxes).max(initial=0.0)))
    box_difference = score_difference = 0.0
    free = np.ones(count, bool)
    # Of detections that are as good as the last one, the export may have kept another.
    last = scores.min(initial=np.inf) + LIMIT if count == len(expected["detection_scores"]) else 0
    for box, score, number in zip(boxes, scores, classes, strict=True):
        apart = np.abs(boxes2 - box).max(axis=1, initial=0.0) / side + np.abs(scores2 - score)
        apart[(classes2 != number) | ~free] = np.inf
        nearest = int(np.argmin(apart))
        if apart[nearest] > LIMIT * 2 and score <= last:
            continue
        free[nearest] = False
        box_difference = max(box_difference, np.abs(boxes2[nearest] - box).max() / side)
        score_difference = max(score_difference, abs(scores2[nearest] - score))
        if not np.isfinite(apart[nearest]):
            box_difference = float("inf")
    return {"detection_boxes": float(box_difference), "detection_scores": float(score_difference)}
