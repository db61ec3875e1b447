"""Prediction of objects with their masks."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from hortus.vision.evaluation import coco_masks
from hortus.vision.serving.services.detection import (
    MIN_DRAWN_SCORE,
    DetectionPrediction,
    DetectionService,
)
from hortus.vision.visualization.instances import MAX_MASKS, draw_instances


@dataclasses.dataclass(frozen=True)
class InstancePrediction(DetectionPrediction):
    """Objects with masks, best first."""

    rles: tuple[dict[str, Any], ...] = ()
    """Masks of the objects, as COCO's compressed run-lengths in the original image."""

    @property
    def masks(self) -> np.ndarray:
        """Pixels of the objects, bool [n, height, width] of the original image."""
        if not self.rles:
            return np.zeros((0, *self.size), bool)
        return coco_masks.decode(self.rles)

    def to_dict(self) -> list[dict[str, Any]]:
        """COCO's format of results, without the image id."""
        found = super().to_dict()
        for each, rle in zip(found, self.rles, strict=True):
            each["segmentation"] = {**rle, "counts": rle["counts"].decode("ascii")}
        return found

    def draw(self, pixels: np.ndarray) -> np.ndarray:
        shown = min(MAX_MASKS, int(np.sum(self.scores >= MIN_DRAWN_SCORE)))
        whole = coco_masks.decode(self.rles[:shown])
        scale = np.array(pixels.shape[:2]) / np.array(self.size)
        rows, columns = (
            np.minimum((np.arange(length) + 0.5) / factor, limit - 1).astype(int)
            for length, factor, limit in zip(pixels.shape[:2], scale, self.size, strict=True)
        )
        return draw_instances(
            pixels,
            self.boxes[:shown] * np.tile(scale, 2),
            self.classes[:shown],
            self.scores[:shown],
            self.class_names,
            masks=whole[:, rows][:, :, columns] if shown else None,
            min_score=MIN_DRAWN_SCORE,
        )


class InstanceService(DetectionService):
    """From an image to the objects in it and, where the model draws them, their masks."""

    output_names = (*DetectionService.output_names, "detection_masks", "detection_outer_boxes")
    box_names = (*DetectionService.box_names, "detection_outer_boxes")
    measured_names = (*DetectionService.measured_names, "detection_masks", "detection_outer_boxes")

    def interpret(
        self, outputs: Mapping[str, np.ndarray], size: tuple[int, int]
    ) -> DetectionPrediction:
        found = super().interpret(outputs, size)
        if "detection_masks" not in outputs:
            return found
        boxes = outputs.get("detection_outer_boxes", outputs["detection_boxes"])
        boxes = self._in_pixels(boxes[: len(found.boxes)], outputs, size)
        rles = [
            coco_masks.paste_encoded(np.asarray(mask, np.float32), box, *size, aligned=True)
            for mask, box in zip(outputs["detection_masks"], boxes, strict=False)
        ]
        parts = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
        return InstancePrediction(**parts, rles=tuple(rles))
