"""What an evaluation of a detector gathers in Python, and reports."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np
from absl import logging
from keras import ops

from hortus.vision.configs import detection as configs
from hortus.vision.dataloaders import preprocess
from hortus.vision.evaluation import coco_masks
from hortus.vision.evaluation.coco import COCOEvaluator
from hortus.vision.evaluation.instance_metrics import InstanceMetrics
from hortus.vision.visualization.boxes import draw_side_by_side
from hortus.vision.visualization.instances import MAX_MASKS, draw_instances, paste_masks
from hortus.vision.visualization.pr_curves import draw_pr_curves

MAX_PICTURES = 8
"""Validation images that are drawn."""
_MAX_TABLE = 100
"""Most classes that are shown one by one."""
_MIN_SCORE = 0.3
"""Detections with a lower score are not drawn."""
_READABLE = 384
"""Smaller sides, in pixels, are enlarged before they are written on."""


def as_pictures(images: Any) -> Any:
    """Normalised images (batch, height, width, channels) as uint8."""
    mean, deviation = np.array(preprocess.MEAN_RGB), np.array(preprocess.STDDEV_RGB)
    if images.shape[-1] != 3:
        mean, deviation = mean.mean(), deviation.mean()
    pixels = ops.cast(images, "float32") * deviation.astype("float32") + mean.astype("float32")
    return ops.cast(ops.clip(ops.round(pixels), 0, 255), "uint8")


class MeanInstanceAP(InstanceMetrics):
    """Average precision at an IoU of 0.5, measured on the device, the mean over the classes."""

    def result(self) -> Any:
        results = super().result()
        is_valid = ops.cast(results["valid_classes"], "float32")
        return ops.sum(results["ap"][0] * is_valid) / ops.maximum(ops.sum(is_valid), 1.0)


class DetectionEvaluation:
    """Average precision, a table of it by class, and pictures.

    Args:
        config: of the task.
        class_names: of the classes 1, 2, ...; empty if they are not known.
        max_detections: most per image and class that count.
    """

    def __init__(
        self, config: configs.DetectionTask, class_names: Sequence[str], max_detections: int = 100
    ):
        self._config, self._class_names = config, tuple(class_names)
        self._evaluator = COCOEvaluator(
            annotation_file=config.annotation_file or None,
            include_mask=config.model.learns_masks,
            per_category_metrics=config.per_category_metrics,
            max_num_eval_detections=max_detections,
            class_names=self._class_names,
            aligned_masks=True,
        )
        self._pictures: list[np.ndarray] = []
        self.table = ""
        """Average precision by class of the last result; empty for very many classes."""

    def update_state(
        self,
        groundtruths: Mapping[str, np.ndarray],
        predictions: Mapping[str, np.ndarray],
        pictures: Optional[np.ndarray] = None,
    ) -> None:
        """Takes in a batch.

        Args:
            groundtruths: in pixels of the original images, see `detection_parser.Parser`.
            predictions: in pixels of the images that the model saw.
            pictures: those images, uint8, to be drawn on.
        """
        self._evaluator.update_state(groundtruths, predictions)
        if pictures is None:
            return
        for index in range(min(len(pictures), MAX_PICTURES - len(self._pictures))):
            self._pictures.append(self._draw(groundtruths, predictions, pictures, index))

    def _draw(
        self,
        groundtruths: Mapping[str, np.ndarray],
        predictions: Mapping[str, np.ndarray],
        pictures: np.ndarray,
        index: int,
    ) -> np.ndarray:
        """What was found in an image, beside what there is."""
        original, _, scale, offset = predictions["image_info"][index]
        height, width = np.ceil(original * scale - offset).astype(int)
        picture = pictures[index, :height, :width]
        truths = groundtruths["boxes"][index] * np.tile(scale, 2) - np.tile(offset, 2)
        factor = int(np.ceil(_READABLE / min(picture.shape[:2])))
        picture = picture.repeat(factor, axis=0).repeat(factor, axis=1)
        found, there = (None, None)
        if self._config.model.learns_masks:
            of_masks = predictions.get("detection_outer_boxes", predictions["detection_boxes"])
            found = paste_masks(
                predictions["detection_masks"][index], of_masks[index] * factor, picture.shape[:2]
            )
            there = self._true_masks(groundtruths, index, scale * factor, offset * factor, picture)
        left = draw_instances(
            picture,
            predictions["detection_boxes"][index] * factor,
            predictions["detection_classes"][index],
            predictions["detection_scores"][index],
            self._class_names,
            masks=found,
            min_score=_MIN_SCORE,
            title="found",
        )
        right = draw_instances(
            picture,
            truths * factor,
            groundtruths["classes"][index],
            class_names=self._class_names,
            masks=there,
            title="truth",
        )
        return draw_side_by_side(left, right)

    def _true_masks(
        self,
        groundtruths: Mapping[str, np.ndarray],
        index: int,
        scale: np.ndarray,
        offset: np.ndarray,
        picture: np.ndarray,
    ) -> Optional[np.ndarray]:
        """Masks of the objects of an image, bool [n, height, width] of the picture."""
        if "mask_codes" not in groundtruths:
            return None
        size = [int(groundtruths[side][index]) for side in ("height", "width")]
        codes, lengths = (groundtruths[f"mask_{part}"][index] for part in ("codes", "lengths"))
        # Only as many as would be drawn.
        whole = coco_masks.decode(coco_masks.from_codes(codes, lengths[:MAX_MASKS], size))
        rows, columns = (
            np.clip((np.arange(length) + 0.5 + begin) / factor, 0, limit - 1).astype(int)
            for length, begin, factor, limit in zip(
                picture.shape[:2], offset, scale, size, strict=True
            )
        )
        masks = whole[:, rows][:, :, columns]
        missing = len(groundtruths["boxes"][index]) - len(masks)
        return np.concatenate([masks, np.zeros((missing, *masks.shape[1:]), bool)])

    def result(self) -> dict[str, Any]:
        """Metrics by name, and pictures as `image/...` where they are asked for."""
        logs: dict[str, Any] = dict(self._evaluator.result())
        rows = self._evaluator.by_category()
        if 0 < len(rows) <= _MAX_TABLE:
            self.table = _table(rows)
            if self._config.model.learns_masks:
                masks = _table(self._evaluator.by_category("mask"))
                self.table += f"\nthe same of masks:\n{masks}"
            logging.info("Average precision by class:\n%s", self.table)
        if not self._config.allow_image_summary:
            return logs
        for number, picture in enumerate(self._pictures):
            logs[f"image/detections/{number}"] = picture[None]
        curves = {
            name: (curve.recall, curve.precision)
            for name, curve in self._evaluator.curves().items()
        }
        values = [row["AP50"] for row in rows.values()]
        logs["image/precision_recall"] = draw_pr_curves(curves, values, "AP at IoU 0.5")[None]
        return logs


def _table(rows: Mapping[str, Mapping[str, float]]) -> str:
    width = max(len("class"), *map(len, rows))
    lines = [f"  {'class':<{width}}  {'AP':>6}  {'AP50':>6}  {'AR':>6}  objects"]
    for name, row in rows.items():
        numbers = "  ".join(f"{row[key]:6.3f}" for key in ("AP", "AP50", "AR"))
        lines.append(f"  {name:<{width}}  {numbers}  {row['objects']:7d}")
    return "\n".join(lines)
