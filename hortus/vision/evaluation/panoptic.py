"""Panoptic quality (Kirillov et al. 2019), in Python."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np

CATEGORY, INSTANCE = "category_mask", "instance_mask"


class PanopticQuality:
    """Counts segments that were found, made up and missed, image by image.

    A segment is all pixels of an instance of a category. It is found where one of the same category
    covers it with an IoU of more than a half. Pixels of the ignored category count for nothing.

    Args:
        num_categories: categories are below this number.
        ignored_label: category that does not count; categories beyond `num_categories` do not,
            either.
        max_instances_per_category: numbers of instances are below this.
        offset: larger than any number of a segment, which is category *
            `max_instances_per_category` + instance.
    """

    def __init__(
        self,
        num_categories: int,
        ignored_label: int,
        max_instances_per_category: int,
        offset: int,
    ):
        if offset < num_categories * max_instances_per_category:
            raise ValueError(
                f"offset must be at least num_categories * max_instances_per_category "
                f"({num_categories * max_instances_per_category}), got {offset}"
            )
        self.num_categories = num_categories
        self.ignored_label = ignored_label
        self.max_instances_per_category = max_instances_per_category
        self.offset = offset
        self.reset()

    def reset(self) -> None:
        """Forgets all images."""
        self.iou_per_class = np.zeros(self.num_categories)
        self.tp_per_class = np.zeros(self.num_categories)
        self.fp_per_class = np.zeros(self.num_categories)
        self.fn_per_class = np.zeros(self.num_categories)

    def compare_and_accumulate(
        self, groundtruths: Mapping[str, Any], predictions: Mapping[str, Any]
    ) -> None:
        """Takes in an image.

        Args:
            groundtruths: `category_mask` and `instance_mask`, integers [height, width].
            predictions: the same.
        """
        true, is_void = self._segments(groundtruths)
        predicted, _ = self._segments(predictions)
        true_areas, predicted_areas = _areas(true), _areas(predicted)
        # The ground truth of a pixel that does not count is the void, as one segment.
        void_areas = _areas(predicted[is_void])
        matched_true, matched_predicted = set(), set()
        for pair, both in _areas(true * self.offset + predicted).items():
            one, other = pair // self.offset, pair % self.offset
            category = self._category(one)
            if category is None or category != self._category(other):
                continue
            either = true_areas[one] + predicted_areas[other] - both - void_areas.get(other, 0)
            if both / either > 0.5:
                self.tp_per_class[category] += 1
                self.iou_per_class[category] += both / either
                matched_true.add(one)
                matched_predicted.add(other)
        for segment in true_areas.keys() - matched_true:
            if (category := self._category(segment)) is not None:
                self.fn_per_class[category] += 1
        for segment in predicted_areas.keys() - matched_predicted:
            is_mostly_void = void_areas.get(segment, 0) / predicted_areas[segment] > 0.5
            if (category := self._category(segment)) is not None and not is_mostly_void:
                self.fp_per_class[category] += 1

    def _segments(self, masks: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Number of each pixel's segment, -1 in the void; and where that is."""
        categories = np.asarray(masks[CATEGORY], np.int64).ravel()
        instances = np.asarray(masks[INSTANCE], np.int64).ravel()
        is_void = (
            (categories == self.ignored_label)
            | (categories < 0)
            | (categories >= self.num_categories)
        )
        if instances[~is_void].max(initial=0) >= self.max_instances_per_category:
            raise ValueError(
                f"instance {instances[~is_void].max()} is not below max_instances_per_category "
                f"({self.max_instances_per_category})"
            )
        segments = categories * self.max_instances_per_category + instances
        # The last number below the offset, as numbers have to be positive.
        return np.where(is_void, self.offset - 1, segments), is_void

    def _category(self, segment: int) -> Optional[int]:
        category = segment // self.max_instances_per_category
        is_void = segment == self.offset - 1 or category == self.ignored_label
        return None if is_void or category >= self.num_categories else int(category)

    def result_per_category(self) -> dict[str, np.ndarray]:
        """`sq`, `rq` and `pq` `_per_class`: how well segments fit, how many are right, and both."""
        return quality(self.iou_per_class, self.tp_per_class, self.fp_per_class, self.fn_per_class)

    def result(self, is_thing: Optional[Sequence[bool]] = None) -> dict[str, Any]:
        """The qualities per category, and their means over the categories that were met.

        Args:
            is_thing: whether each category is countable; None gives the mean over all only.

        Returns:
            `*_per_class`, and `All_pq`, `All_sq`, `All_rq`, `All_num_categories`; the same for
            `Things` and `Stuff`.
        """
        results: dict[str, Any] = dict(self.result_per_category())
        is_met = self.tp_per_class + self.fp_per_class + self.fn_per_class > 0
        if 0 <= self.ignored_label < self.num_categories:
            is_met[self.ignored_label] = False
        groups = {"All": is_met}
        if is_thing is not None:
            things = np.asarray(is_thing, bool)
            groups |= {"Things": is_met & things, "Stuff": is_met & ~things}
        for name, group in groups.items():
            for key in ("pq", "sq", "rq"):
                values = results[f"{key}_per_class"][group]
                results[f"{name}_{key}"] = float(values.mean()) if len(values) else 0.0
            results[f"{name}_num_categories"] = int(group.sum())
        return results


class PanopticQualityEvaluator:
    """Panoptic quality of batches, in the face of a metric.

    Args:
        num_categories: see `PanopticQuality`, as for the next three.
        ignored_label: see there.
        max_instances_per_category: see there.
        offset: see there.
        is_thing: whether each category is countable; None for no such means.
        rescale_predictions: the ground truth has the images' original sizes, padded, and
            `image_info` tells how predictions get there; see `dataloaders.preprocess`.
    """

    name = "panoptic_quality"

    def __init__(
        self,
        num_categories: int,
        ignored_label: int,
        max_instances_per_category: int,
        offset: int,
        is_thing: Optional[Sequence[bool]] = None,
        rescale_predictions: bool = False,
    ):
        self.is_thing = is_thing
        self.rescale_predictions = rescale_predictions
        self._quality = PanopticQuality(
            num_categories, ignored_label, max_instances_per_category, offset
        )

    def reset_states(self) -> None:
        self._quality.reset()

    def update_state(self, groundtruths: Mapping[str, Any], predictions: Mapping[str, Any]) -> None:
        """Takes in a batch.

        Args:
            groundtruths: `category_mask` and `instance_mask`, integers [batch, height, width], and,
                to rescale, `image_info` [batch, 4, 2].
            predictions: the same masks.
        """
        keys = (CATEGORY, INSTANCE)
        true = {key: np.asarray(groundtruths[key]) for key in keys}
        predicted = {key: np.asarray(predictions[key]) for key in keys}
        for index in range(len(true[CATEGORY])):
            one = {key: true[key][index] for key in keys}
            other = {key: predicted[key][index] for key in keys}
            if self.rescale_predictions:
                info = np.asarray(groundtruths["image_info"])[index]
                height, width = (int(side) for side in info[0])
                one = {key: mask[:height, :width] for key, mask in one.items()}
                other = {key: _to_original(mask, info) for key, mask in other.items()}
            self._quality.compare_and_accumulate(one, other)

    def result(self) -> dict[str, Any]:
        return self._quality.result(self.is_thing)


def quality(iou: Any, tp: Any, fp: Any, fn: Any) -> dict[str, np.ndarray]:
    """The three qualities per class, from sums per class; 0 where there is nothing to divide by."""
    segments = tp + 0.5 * fp + 0.5 * fn
    sq = iou / np.maximum(tp, 1e-12)
    rq = tp / np.maximum(segments, 1e-12)
    return {"sq_per_class": sq, "rq_per_class": rq, "pq_per_class": sq * rq}


def _areas(segments: np.ndarray) -> dict[int, int]:
    numbers, counts = np.unique(segments, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def _to_original(mask: np.ndarray, info: np.ndarray) -> np.ndarray:
    """The part of a mask that shows the original, at the original's size; nearest pixels."""
    original, wanted, scale, offset = info
    places = []
    for axis in range(2):
        pixels = np.arange(int(original[axis]))
        shown = np.round(original[axis] * scale[axis])
        inside = np.floor((pixels + 0.5) * (shown / original[axis])) - offset[axis]
        inside = np.clip(inside, 0, min(shown - offset[axis], wanted[axis]) - 1)
        # From pixels of the model's input to those of the mask, which may be smaller.
        inside = np.floor((inside + 0.5) * (mask.shape[axis] / wanted[axis]))
        places.append(inside.astype(int))
    return mask[places[0]][:, places[1]]
