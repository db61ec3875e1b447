"""COCO's average precision, as a metric in Python."""

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np

from hortus.vision.evaluation import coco_masks
from hortus.vision.evaluation.coco_accumulation import RECALLS, Evaluation, evaluate
from hortus.vision.evaluation.coco_annotations import (
    Annotations,
    category_of_class,
    read_annotations,
)
from hortus.vision.evaluation.coco_matching import Detections, Objects, Overlap
from hortus.vision.evaluation.coco_state import Kept, as_arrays, look_up, to_xywh, valid_rows

_PREDICTIONS = (
    "source_id",
    "num_detections",
    "detection_boxes",
    "detection_scores",
    "detection_classes",
)
_PER_CATEGORY = ("AP", "AP50", "AR")
_GROUNDTRUTHS = ("source_id", "num_detections", "boxes", "classes")

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Curve:
    """Precision of a class by recall, at an IoU of 0.5."""

    recall: np.ndarray
    """0, 0.01, ..., 1."""
    precision: np.ndarray
    """At that recall or a higher one; 0 where it is not reached."""
    scores: np.ndarray
    """At which that recall is reached; 0 where it is not."""


class COCOEvaluator:
    """Average precision and recall of boxes, and of masks, as pycocotools gives them.

    The ground truth comes from an annotation file, or batch by batch with the predictions. Only
    what counts is kept of each image: its detections, and its objects.

    `result` gives AP, AP50, AP75, APs, APm, APl, ARmax1, ARmax10, ARmax100, ARs, ARm, ARl, each
    once more with `mask_` before it where masks are included; -1 where there is nothing to find.
    The average over all detections is that of the `max_num_eval_detections` best.

    Args:
        annotation_file: COCO JSON; None takes the ground truth from `update_state`.
        include_mask: measure masks too.
        need_rescale_bboxes: boxes are in pixels of the resized image, and are brought back to the
            original by `image_info`.
        per_category_metrics: also AP, AP50 and AR of each class, as `AP/<class>`.
        max_num_eval_detections: best detections per image and class that count.
        class_names: names of the classes 1, 2, ... of the model. They name the metrics, and tell
            which category of an annotation file a class is; without names its id has to be the
            class number.
        aligned_masks: whether predicted masks are pasted exactly into their boxes, see
            `coco_masks.paste`.
    """

    name = "coco"

    def __init__(
        self,
        annotation_file: Optional[str] = None,
        include_mask: bool = False,
        need_rescale_bboxes: bool = True,
        per_category_metrics: bool = False,
        max_num_eval_detections: int = 100,
        class_names: Sequence[str] = (),
        aligned_masks: bool = False,
    ):
        self.annotation_file = annotation_file
        self.include_mask = include_mask
        self.need_rescale_bboxes = need_rescale_bboxes
        self.per_category_metrics = per_category_metrics
        self.max_num_eval_detections = max_num_eval_detections
        self.class_names = tuple(class_names)
        self.aligned_masks = aligned_masks
        self.evaluations: dict[str, Evaluation] = {}
        """Precision and recall of the last result, of `box` and `mask`."""
        self.categories: tuple[str, ...] = ()
        """Names of the categories of the last result."""
        self._annotations: Optional[Annotations] = None
        self.reset_states()

    def reset_states(self) -> None:
        """Forgets all images; the last result stays."""
        self._image_ids: list[np.ndarray] = []
        self._image_count = 0
        self._predicted = Kept()
        self._truth = Kept()

    # ---- update -----------------------------------------------------------------------------

    def update_state(
        self, groundtruths: Optional[Mapping[str, Any]], predictions: Mapping[str, Any]
    ) -> None:
        """Adds the images of a batch.

        Values are arrays or tensors with the images in the first dimension, or lists of such, one
        per replica. Rows beyond `num_detections` do not count.

        Args:
            groundtruths: `source_id`, `num_detections` [b], `boxes` [b, n, 4] of ymin, xmin, ymax,
                xmax in pixels of the original image, `classes` [b, n], perhaps `is_crowds`,
                `is_difficults` and `areas` [b, n]. With masks either bitmaps, `masks`
                [b, n, height, width], or run-lengths, `mask_codes` [b, l] and `mask_lengths`
                [b, n] as `dataloaders.detection.mask_parser` gives them, with `height` and `width`
                [b]. Not looked at where there is an annotation file.
            predictions: `source_id`, `num_detections` [b], `detection_boxes` [b, n, 4],
                `detection_scores`, `detection_classes` [b, n]; `image_info` [b, 4, 2] where boxes
                are to be rescaled; with masks `detection_masks` [b, n, h, w], each of its box, or
                of its `detection_outer_boxes` [b, n, 4] where there are such, and `image_info` too.
        """
        found = as_arrays(predictions, self._wanted_predictions(), "predictions")
        ids = found["source_id"].reshape(-1)
        images = self._image_count + np.arange(len(ids))
        if not self.annotation_file:
            if groundtruths is None:
                raise ValueError("without an annotation file, ground truth is needed")
            wanted = self._wanted_groundtruths(groundtruths)
            truth = as_arrays(groundtruths, wanted, "groundtruths")
            if not np.array_equal(truth["source_id"].reshape(-1), ids):
                raise ValueError("groundtruths and predictions are not of the same images")
            self._add_truth(truth, images)
        self._add_predictions(found, images)
        self._image_ids.append(ids.astype(np.int64))
        self._image_count += len(ids)

    def _wanted_predictions(self) -> tuple[str, ...]:
        wanted: tuple[str, ...] = _PREDICTIONS
        if self.need_rescale_bboxes or self.include_mask:
            wanted += ("image_info",)
        return (*wanted, "detection_masks") if self.include_mask else wanted

    def _wanted_groundtruths(self, groundtruths: Mapping[str, Any]) -> tuple[str, ...]:
        if not self.include_mask:
            return _GROUNDTRUTHS
        if "mask_codes" in groundtruths:
            return (*_GROUNDTRUTHS, "mask_codes", "mask_lengths", "height", "width")
        return (*_GROUNDTRUTHS, "masks")

    def _add_predictions(self, found: dict[str, np.ndarray], images: np.ndarray) -> None:
        boxes = self._original(found["detection_boxes"], found)
        valid = valid_rows(found["num_detections"], boxes)
        rles: list[dict[str, Any]] = []
        if self.include_mask:
            outer = found.get("detection_outer_boxes")
            of_masks = boxes if outer is None else self._original(outer, found)
            for image, row in zip(*np.nonzero(valid), strict=True):
                height, width = (int(side) for side in found["image_info"][image, 0])
                mask = found["detection_masks"][image, row].astype(np.float32)
                box = of_masks[image, row]
                rles.append(coco_masks.paste_encoded(mask, box, height, width, self.aligned_masks))
        self._predicted.add(
            images[np.nonzero(valid)[0]],
            rles,
            boxes=boxes[valid],
            scores=found["detection_scores"][valid].astype(np.float32),
            classes=found["detection_classes"][valid].astype(np.int64),
        )

    def _original(self, boxes: np.ndarray, found: dict[str, np.ndarray]) -> np.ndarray:
        """Boxes [b, n, 4] in pixels of the original image, float32."""
        boxes = boxes.astype(np.float32)
        if not self.need_rescale_bboxes:
            return boxes
        scale, offset = (np.tile(found["image_info"][:, row], 2)[:, None] for row in (2, 3))
        return (boxes + offset) / scale

    def _add_truth(self, truth: dict[str, np.ndarray], images: np.ndarray) -> None:
        boxes = truth["boxes"].astype(np.float32)
        valid = valid_rows(truth["num_detections"], boxes)
        shape = boxes.shape[:2]
        crowd = truth.get("is_crowds", np.zeros(shape)).astype(bool)[valid]
        difficult = truth.get("is_difficults", np.zeros(shape)).astype(bool)[valid]
        rles: list[dict[str, Any]] = []
        if self.include_mask:
            for image, rows in enumerate(valid):
                rles += _truth_rles(truth, image, np.flatnonzero(rows))
        kept = boxes[valid].astype(np.float64)
        areas = (kept[:, 2] - kept[:, 0]) * (kept[:, 3] - kept[:, 1])
        if "areas" in truth:
            areas = truth["areas"][valid].astype(np.float64)
        elif rles:
            areas = coco_masks.areas(rles)
        self._truth.add(
            images[np.nonzero(valid)[0]],
            rles,
            boxes=boxes[valid],
            classes=truth["classes"][valid].astype(np.int64),
            areas=areas,
            is_crowd=crowd,
            is_ignored=crowd | difficult,
        )

    # ---- result -----------------------------------------------------------------------------

    def result(self) -> dict[str, np.float32]:
        """The metrics of all images since the last reset, which are then forgotten."""
        if not self._image_count:
            raise ValueError("nothing was evaluated: the validation data gave no images")
        objects, object_rles, detections, detection_rles = self._collect()
        limits = [limit for limit in (1, 10) if limit < self.max_num_eval_detections]
        limits.append(self.max_num_eval_detections)
        overlaps: dict[str, Optional[Overlap]] = {"box": None}
        if self.include_mask:
            # Objects have the areas of their masks, so detections are measured by theirs as well.
            detections = dataclasses.replace(detections, areas=coco_masks.areas(detection_rles))
            overlaps["mask"] = coco_masks.mask_overlap(
                objects, detections, object_rles, detection_rles
            )
        self.evaluations = {
            kind: evaluate(objects, detections, len(self.categories), limits, overlap)
            for kind, overlap in overlaps.items()
        }
        self.reset_states()
        metrics: dict[str, float] = {}
        for kind, evaluation in self.evaluations.items():
            prefix = "" if kind == "box" else f"{kind}_"
            for key, value in _summary(evaluation).items():
                metrics[prefix + key] = value
            if self.per_category_metrics:
                for name, row in self.by_category(kind).items():
                    metrics.update({f"{prefix}{key}/{name}": row[key] for key in _PER_CATEGORY})
        return {key: np.float32(value) for key, value in metrics.items()}

    def by_category(self, kind: str = "box") -> dict[str, dict[str, float]]:
        """AP, AP50, AR and number of objects of each class that has some, by its name.

        Of the last result, as are the curves.
        """
        evaluation = self.evaluations[kind]
        return {
            name: {
                "AP": evaluation.average_precision(category=place),
                "AP50": evaluation.average_precision(0.5, category=place),
                "AR": evaluation.average_recall(category=place),
                "objects": int(evaluation.num_objects[place]),
            }
            for place, name in enumerate(self.categories)
            if evaluation.num_objects[place]
        }

    def curves(self, kind: str = "box") -> dict[str, Curve]:
        """Precision by recall of each class that has objects, by its name."""
        evaluation = self.evaluations[kind]
        return {
            name: Curve(
                RECALLS, evaluation.precision[0, :, place, 0], evaluation.scores[0, :, place, 0]
            )
            for place, name in enumerate(self.categories)
            if evaluation.num_objects[place]
        }

    # ---- what was kept ----------------------------------------------------------------------

    def _collect(
        self,
    ) -> tuple[Objects, list[dict[str, Any]], Detections, list[dict[str, Any]]]:
        """Objects and detections with their masks, images in the order of their ids."""
        if self.annotation_file:
            objects, object_rles, category_of, images = self._annotated(self.annotation_file)
        else:
            objects, object_rles, category_of, images = self._given()
        found = self._predicted.columns()
        categories, places = look_up(category_of, found["classes"]), images[found["images"]]
        kept = np.flatnonzero((categories >= 0) & (places >= 0))
        boxes = to_xywh(found["boxes"][kept])
        detections = Detections(
            images=places[kept],
            categories=categories[kept],
            boxes=boxes,
            areas=boxes[:, 2] * boxes[:, 3],
            scores=found["scores"][kept].astype(np.float64),
        )
        self._warn(objects, found, detections)
        rles = self._predicted.rles
        return objects, object_rles, detections, [rles[row] for row in kept] if rles else []

    def _given(self) -> tuple[Objects, list[dict[str, Any]], dict[int, int], np.ndarray]:
        """Ground truth that came with the predictions."""
        truth = self._truth.columns()
        classes, categories = np.unique(truth["classes"], return_inverse=True)
        self.categories = tuple(self._name_of(int(one)) for one in classes)
        # Truth and predictions came in pairs: the ids give no more than the order of the images.
        images = np.argsort(np.argsort(np.concatenate(self._image_ids), kind="stable"))
        objects = Objects(
            images=images[truth["images"]],
            categories=categories.reshape(-1).astype(np.int64),
            boxes=to_xywh(truth["boxes"]),
            areas=truth["areas"],
            is_crowd=truth["is_crowd"],
            is_ignored=truth["is_ignored"],
        )
        category_of = {int(one): place for place, one in enumerate(classes)}
        return objects, self._truth.rles, category_of, images

    def _annotated(
        self, path: str
    ) -> tuple[Objects, list[dict[str, Any]], dict[int, int], np.ndarray]:
        """Ground truth of the annotation file, of the images that were evaluated."""
        if self._annotations is None:
            self._annotations = read_annotations(path, self.include_mask)
        known = self._annotations
        self.categories = known.category_names
        ids = np.concatenate(self._image_ids)
        place_of_id = {one: place for place, one in enumerate(known.image_ids.tolist())}
        images = look_up(place_of_id, ids)
        # An image that was evaluated twice counts once.
        first = np.zeros(len(ids), bool)
        first[np.unique(images, return_index=True)[1]] = True
        images = np.where(first, images, -1)
        seen = np.unique(images[images >= 0])
        if not len(seen):
            raise ValueError(
                f"{path} has none of the images that were evaluated: its ids are "
                f"{known.image_ids[:5].tolist()} ..., theirs {ids[:5].tolist()} ..."
            )
        if len(seen) < len(known.image_ids):
            _log.warning(
                "%d of the %d images of %s were evaluated; the others do not count",
                len(seen),
                len(known.image_ids),
                path,
            )
        kept = np.flatnonzero(np.isin(known.objects.images, seen))
        columns = dataclasses.asdict(known.objects)
        objects = Objects(**{name: values[kept] for name, values in columns.items()})
        rles = [known.rles[row] for row in kept] if known.rles else []
        return objects, rles, category_of_class(known, self.class_names), images

    def _name_of(self, number: int) -> str:
        if 0 < number <= len(self.class_names):
            return self.class_names[number - 1]
        return str(number)

    def _warn(self, objects: Objects, found: dict[str, np.ndarray], detections: Detections) -> None:
        """Says what makes an average precision of 0, or none at all."""
        if not len(objects):
            _log.warning("the ground truth has no objects: there is no average precision")
        elif not len(found["classes"]):
            _log.warning("there are no detections: average precision is 0")
        elif not len(detections):
            _log.warning(
                "no detection is of a class that the ground truth has (%s); the detections have "
                "the classes %s",
                ", ".join(self.categories[:10]),
                np.unique(found["classes"])[:10].tolist(),
            )
        elif np.max(detections.boxes) <= 2.0 < np.max(objects.boxes):
            _log.warning(
                "the boxes of all detections lie within 2 pixels of the corner: they seem to be "
                "shares of the image size, where pixels are expected"
            )


def _truth_rles(truth: dict[str, np.ndarray], image: int, rows: np.ndarray) -> list[dict[str, Any]]:
    """Run-length encodings of some objects of an image."""
    size = [int(truth[side].reshape(-1)[image]) for side in ("height", "width") if side in truth]
    if "mask_codes" in truth:
        codes, lengths = truth["mask_codes"][image], truth["mask_lengths"][image]
        rles = coco_masks.from_codes(codes, lengths, size)
        return [rles[row] for row in rows]
    masks = truth["masks"][image, rows]
    if size:
        masks = masks[:, : size[0], : size[1]]
    return coco_masks.encode(masks > 0.5)


def _summary(evaluation: Evaluation) -> dict[str, float]:
    precision, recall = evaluation.average_precision, evaluation.average_recall
    return {
        "AP": precision(),
        "AP50": precision(0.5),
        "AP75": precision(0.75),
        "APs": precision(area="small"),
        "APm": precision(area="medium"),
        "APl": precision(area="large"),
        **{f"ARmax{limit}": recall(limit) for limit in evaluation.max_detections},
        "ARs": recall(area="small"),
        "ARm": recall(area="medium"),
        "ARl": recall(area="large"),
    }
