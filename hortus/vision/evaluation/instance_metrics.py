"""Average precision inside of the compiled step: approximate, but cheap in memory and anywhere."""

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import keras
import numpy as np
from keras import ops

from hortus.vision.ops import iou as iou_ops


class AveragePrecision(abc.ABC):
    """From a curve of precision and recall to one number."""

    @abc.abstractmethod
    def __call__(self, precisions: Any, recalls: Any) -> Any:
        """Averages curves.

        Args:
            precisions: [..., n], along falling scores.
            recalls: [..., n], never falling.

        Returns:
            [...], 0 to 1.
        """

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AveragePrecision":
        """Makes one from what `get_config` gave."""
        return cls(**config)


@keras.saving.register_keras_serializable(package="Hortus")
class COCOAveragePrecision(AveragePrecision):
    """Mean of the best precisions at some recalls or beyond, as COCO does.

    Args:
        num_recall_eval_points: number of recalls, evenly spread over 0 to 1.
    """

    def __init__(self, num_recall_eval_points: int = 101):
        self.num_recall_eval_points = num_recall_eval_points

    def __call__(self, precisions: Any, recalls: Any) -> Any:
        points = np.linspace(0.0, 1.0, self.num_recall_eval_points).astype("float32")

        def at_recall(point: Any) -> Any:
            return ops.max(ops.where(recalls >= point, precisions, 0.0), axis=-1)

        return ops.mean(ops.map(at_recall, ops.convert_to_tensor(points)), axis=0)

    def get_config(self) -> dict[str, Any]:
        return {"num_recall_eval_points": self.num_recall_eval_points}


@keras.saving.register_keras_serializable(package="Hortus")
class VOC2010AveragePrecision(AveragePrecision):
    """Area under the curve of the best precision at each recall or beyond, as Pascal VOC 2010."""

    def __call__(self, precisions: Any, recalls: Any) -> Any:
        best, step = precisions, 1
        while step < precisions.shape[-1]:
            # Each round looks twice as far ahead.
            ahead = ops.concatenate([best[..., step:], ops.zeros_like(best[..., :step])], axis=-1)
            best, step = ops.maximum(best, ahead), 2 * step
        gains = ops.diff(ops.concatenate([ops.zeros_like(recalls[..., :1]), recalls], -1), axis=-1)
        return ops.sum(gains * best, axis=-1)


@keras.saving.register_keras_serializable(package="Hortus")
class InstanceMetrics(keras.metrics.Metric):
    """Average precision of boxes or masks of each class.

    Scores are counted in bins, so detections whose scores are in one bin count as equal. Matching
    is that of COCO: in the order of scores, each detection takes the free object of its class that
    it overlaps most; a detection that finds a crowd does not count.

    Args:
        num_classes: number of classes, the background class 0 included.
        use_masks: go by the overlap of masks instead of boxes.
        iou_thresholds: smallest overlaps, 0 to 1; t of them.
        confidence_thresholds: scores at which to measure precision and recall; f of them.
        num_confidence_bins: bins of scores from 0 to 1.
        average_precision_algorithms: by their names in the result; None for COCO's, as `ap`.
    """

    def __init__(
        self,
        num_classes: int,
        use_masks: bool = False,
        iou_thresholds: Sequence[float] = (0.5,),
        confidence_thresholds: Sequence[float] = (),
        num_confidence_bins: int = 1000,
        average_precision_algorithms: Optional[Mapping[str, AveragePrecision]] = None,
        name: Optional[str] = None,
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_classes = num_classes
        self.use_masks = use_masks
        self.iou_thresholds = tuple(iou_thresholds)
        self.confidence_thresholds = tuple(confidence_thresholds)
        self.num_confidence_bins = num_confidence_bins
        self.average_precision_algorithms = dict(
            average_precision_algorithms or {"ap": COCOAveragePrecision()}
        )
        overlaps, scores = len(self.iou_thresholds), len(self.confidence_thresholds)
        self._right = self._counter("right", num_classes, num_confidence_bins, overlaps)
        self._wrong = self._counter("wrong", num_classes, num_confidence_bins, overlaps)
        self._objects = self._counter("objects", num_classes)
        if scores:
            self._right_above = self._counter("right_above", scores, overlaps, num_classes)
            self._wrong_above = self._counter("wrong_above", scores, overlaps, num_classes)

    def _counter(self, name: str, *shape: int) -> keras.Variable:
        return self.add_variable(shape, initializer="zeros", dtype="float32", name=name)

    # ---- update -----------------------------------------------------------------------------

    def update_state(self, y_true: Mapping[str, Any], y_pred: Mapping[str, Any]) -> None:
        """Adds the images of a batch.

        Args:
            y_true: `boxes` [b, m, 4], `classes` [b, m], 0 or less for padding, perhaps `is_crowd`
                [b, m]; with masks `masks` [b, m, h, w].
            y_pred: `detection_boxes` [b, n, 4], `detection_classes` and `detection_scores` [b, n],
                class 0 or less for padding; perhaps `num_detections` [b]; with masks
                `detection_masks` [b, n, h, w] of the same size as the others.
        """
        classes = ops.cast(y_true["classes"], "int32")
        is_object = classes > 0
        crowd = ops.logical_and(ops.cast(y_true.get("is_crowd", classes * 0), "bool"), is_object)
        found = ops.cast(y_pred["detection_classes"], "int32")
        scores = ops.cast(y_pred["detection_scores"], "float32")
        is_detection = found > 0
        if "num_detections" in y_pred:
            rows = ops.arange(found.shape[1], dtype="int32")
            limit = ops.reshape(ops.cast(y_pred["num_detections"], "int32"), (-1, 1))
            is_detection = ops.logical_and(is_detection, rows < limit)
        overlaps = self._overlaps(y_true, y_pred, crowd)
        same = ops.expand_dims(found, 2) == ops.expand_dims(classes, 1)
        overlaps = ops.where(ops.logical_and(same, ops.expand_dims(is_object, 1)), overlaps, -1.0)

        order = ops.argsort(-scores, axis=1)
        scores = ops.take_along_axis(scores, order, axis=1)
        found = ops.take_along_axis(found, order, axis=1)
        is_detection = ops.take_along_axis(is_detection, order, axis=1)
        overlaps = ops.take_along_axis(overlaps, ops.expand_dims(order, 2), axis=1)
        overlaps = ops.where(ops.expand_dims(is_detection, 2), overlaps, -1.0)
        is_right, is_ignored = self._match(overlaps, crowd)

        counts = ops.cast(ops.expand_dims(is_detection, -1), "float32")
        right = ops.cast(is_right, "float32") * counts
        neither = ops.logical_or(is_right, is_ignored)
        wrong = ops.cast(ops.logical_not(neither), "float32") * counts
        self._count(found, scores, right, wrong)
        numbers = ops.where(ops.logical_and(is_object, ops.logical_not(crowd)), classes, -1)
        per_class = ops.sum(ops.one_hot(numbers, self.num_classes), axis=(0, 1))
        self._objects.assign(self._objects + per_class)

    def _overlaps(self, y_true: Mapping[str, Any], y_pred: Mapping[str, Any], crowd: Any) -> Any:
        """IoU of detections and objects; with crowds the share of the detection; [b, n, m]."""
        if not self.use_masks:
            boxes, others = y_pred["detection_boxes"], y_true["boxes"]
            inside = iou_ops.intersection_over_area(boxes, others)
            return ops.where(ops.expand_dims(crowd, 1), inside, iou_ops.iou(boxes, others))
        masks, others = (
            ops.reshape(ops.cast(values, "float32"), (*values.shape[:2], -1))
            for values in (y_pred["detection_masks"], y_true["masks"])
        )
        both = ops.matmul(masks, ops.swapaxes(others, 1, 2))
        areas = ops.expand_dims(ops.sum(masks, axis=-1), 2)
        unions = areas + ops.expand_dims(ops.sum(others, axis=-1), 1) - both
        return both / ops.maximum(ops.where(ops.expand_dims(crowd, 1), areas, unions), 1e-6)

    def _match(self, overlaps: Any, crowd: Any) -> tuple[Any, Any]:
        """Which detections are right, and which do not count; bool [b, n, t] each.

        Args:
            overlaps: of detections, best first, and objects, [b, n, m]; -1 for what cannot meet.
            crowd: which objects are crowds, [b, m].
        """
        thresholds = np.array(self.iou_thresholds, "float32")[:, None]
        crowd = ops.expand_dims(crowd, 1)
        objects = overlaps.shape[2]

        def choose(taken: Any, overlap: Any) -> tuple[Any, Any]:
            overlap = ops.expand_dims(overlap, 1)
            free = ops.logical_not(ops.logical_or(taken, crowd))
            free = ops.logical_and(overlap >= thresholds, free)
            best = ops.argmax(ops.where(free, overlap, -1.0), axis=-1)
            chosen = ops.logical_and(ops.one_hot(best, objects, dtype="bool"), free)
            return ops.logical_or(taken, chosen), chosen

        is_near = ops.expand_dims(overlaps, 2) >= thresholds
        _, chosen = ops.scan(choose, ops.zeros_like(is_near[:, 0]), ops.moveaxis(overlaps, 1, 0))
        is_right = ops.any(ops.moveaxis(chosen, 0, 1), axis=-1)
        in_crowd = ops.any(ops.logical_and(is_near, ops.expand_dims(crowd, 1)), axis=-1)
        return is_right, ops.logical_and(in_crowd, ops.logical_not(is_right))

    def _count(self, classes: Any, scores: Any, right: Any, wrong: Any) -> None:
        """Adds detections to the bins; classes and scores [b, n], right and wrong [b, n, t]."""
        bins, overlaps = self.num_confidence_bins, len(self.iou_thresholds)
        place = ops.cast(ops.floor(scores * bins), "int32")
        place = ops.clip(place, 0, bins - 1)
        known = ops.clip(classes, 0, self.num_classes - 1)
        index = ops.reshape(known * bins + place, (-1,))
        shape = (self.num_classes, bins, overlaps)
        for variable, values in ((self._right, right), (self._wrong, wrong)):
            rows = ops.reshape(values, (-1, overlaps))
            sums = ops.segment_sum(rows, index, num_segments=self.num_classes * bins)
            variable.assign(variable + ops.reshape(sums, shape))
        if self.confidence_thresholds:
            limits = np.array(self.confidence_thresholds, "float32")[:, None, None]
            above = ops.cast(ops.expand_dims(scores, 0) >= limits, "float32")
            by_class = ops.one_hot(known, self.num_classes, dtype="float32")
            for variable, values in ((self._right_above, right), (self._wrong_above, wrong)):
                sums = ops.einsum("fbn,bnt,bnc->ftc", above, values, by_class)
                variable.assign(variable + sums)

    # ---- result -----------------------------------------------------------------------------

    def result(self) -> dict[str, Any]:
        """Average precision [t, num_classes] by each algorithm, and `valid_classes`.

        `valid_classes`, bool [num_classes], are those with objects; others have 0. With score
        thresholds also `precisions` and `recalls` [f, t, num_classes].
        """
        objects = ops.convert_to_tensor(self._objects)
        # [t, classes, bins], from the highest score on.
        right, wrong = (
            ops.cumsum(ops.flip(ops.transpose(variable, (2, 0, 1)), axis=-1), axis=-1)
            for variable in (self._right, self._wrong)
        )
        precisions = right / ops.maximum(right + wrong, 1.0)
        recalls = right / ops.maximum(ops.expand_dims(objects, -1), 1.0)
        results = {
            name: average(precisions, recalls)
            for name, average in self.average_precision_algorithms.items()
        }
        results["valid_classes"] = objects > 0
        if self.confidence_thresholds:
            found = ops.convert_to_tensor(self._right_above)
            all_found = ops.maximum(found + self._wrong_above, 1.0)
            results["precisions"] = found / all_found
            results["recalls"] = found / ops.maximum(objects, 1.0)
        return results

    def get_average_precision_metrics_keys(self) -> list[str]:
        """Keys of the result that hold average precision."""
        return list(self.average_precision_algorithms)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "use_masks": self.use_masks,
            "iou_thresholds": self.iou_thresholds,
            "confidence_thresholds": self.confidence_thresholds,
            "num_confidence_bins": self.num_confidence_bins,
            "average_precision_algorithms": {
                name: keras.saving.serialize_keras_object(algorithm)
                for name, algorithm in self.average_precision_algorithms.items()
            },
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "InstanceMetrics":
        algorithms = config.pop("average_precision_algorithms")
        return cls(
            **config,
            average_precision_algorithms={
                name: keras.saving.deserialize_keras_object(algorithm)
                for name, algorithm in algorithms.items()
            },
        )
