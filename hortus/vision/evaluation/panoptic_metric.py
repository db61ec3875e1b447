"""Panoptic quality (Kirillov et al. 2019) as a Keras metric, which can be compiled."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import keras
from keras import ops

from hortus.vision.evaluation.panoptic import CATEGORY, INSTANCE


class PanopticQualityMetric(keras.metrics.Metric):
    """What `PanopticQuality` counts, for batches, inside a compiled step.

    The result is a dict of `pq_per_class`, `sq_per_class`, `rq_per_class` and of which classes that
    were met are things and stuff: `valid_thing_classes`, `valid_stuff_classes`.

    Args:
        num_categories: categories are below this number.
        is_thing: whether each category is countable; None counts all as things.
        max_num_instances: numbers of instances are below this.
        ignored_label: category that does not count.
        name: of the metric.
        dtype: of the result.
    """

    def __init__(
        self,
        num_categories: int,
        is_thing: Optional[Sequence[bool]] = None,
        max_num_instances: int = 255,
        ignored_label: int = 255,
        name: str = "panoptic_quality",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_categories = num_categories
        self.is_thing = tuple(is_thing) if is_thing is not None else None
        self.max_num_instances = max_num_instances
        self.ignored_label = ignored_label
        if ((num_categories + 1) * max_num_instances) ** 2 >= 2**31:
            raise ValueError(
                f"pairs of segments have to fit into 32 bits: {num_categories} categories of "
                f"{max_num_instances} instances are too many; lower max_num_instances"
            )
        # Sums of IoU, true positives, false positives and false negatives.
        self.sums = self.add_weight(
            shape=(4, num_categories), initializer="zeros", dtype="float32", name="sums"
        )

    def update_state(
        self, y_true: Mapping[str, Any], y_pred: Mapping[str, Any], sample_weight: Any = None
    ) -> None:
        """Takes in `category_mask` and `instance_mask`, integers [batch, height, width], twice."""
        del sample_weight
        parts = [
            ops.reshape(ops.cast(masks[key], "int32"), (ops.shape(masks[key])[0], -1))
            for masks in (y_true, y_pred)
            for key in (CATEGORY, INSTANCE)
        ]
        true, predicted = self._segments(*parts[:2]), self._segments(*parts[2:])
        sums = ops.map(lambda pair: self._compare(pair[0], pair[1]), (true, predicted))
        self.sums.assign_add(ops.sum(sums, axis=0))

    def _segments(self, categories: Any, instances: Any) -> Any:
        """Numbers of segments; those of the void are beyond the last category's."""
        is_void = ops.logical_or(
            categories == self.ignored_label,
            ops.logical_or(categories < 0, categories >= self.num_categories),
        )
        instances = ops.clip(instances, 0, self.max_num_instances - 1)
        segments = categories * self.max_num_instances + instances
        return ops.where(is_void, self.num_categories * self.max_num_instances, segments)

    def _compare(self, true: Any, predicted: Any) -> Any:
        """The sums [4, categories] of one image, from numbers of segments [pixels]."""
        count = (self.num_categories + 1) * self.max_num_instances
        void = self.num_categories * self.max_num_instances
        ones = ops.ones_like(true, dtype="float32")
        is_void = ops.cast(true == void, "float32")
        true_areas = ops.segment_sum(ones, true, num_segments=count)
        predicted_areas = ops.segment_sum(ones, predicted, num_segments=count)
        void_areas = ops.segment_sum(is_void, predicted, num_segments=count)

        # Pixels of the same pair of segments stand together once sorted: each run is a pair.
        pairs = ops.sort(true * count + predicted)
        begins = ops.concatenate(
            [ops.zeros_like(pairs[:1]), ops.cast(pairs[1:] != pairs[:-1], "int32")]
        )
        runs = ops.cumsum(begins)
        pixels = ops.shape(pairs)[0]
        both = ops.segment_sum(ones, runs, num_segments=pixels)
        pair = ops.segment_max(pairs, runs, num_segments=pixels)
        is_run = both > 0
        pair = ops.where(is_run, pair, 0)
        one, other = pair // count, pair % count
        either = ops.take(true_areas, one) + ops.take(predicted_areas, other) - both
        either = either - ops.take(void_areas, other)
        iou = ops.where(is_run, both / ops.maximum(either, 1.0), 0.0)
        category = one // self.max_num_instances
        is_same = ops.logical_and(category == other // self.max_num_instances, one < void)
        found = ops.cast(ops.logical_and(iou > 0.5, is_same), "float32")

        matched_true = ops.segment_max(found, one, num_segments=count)
        matched_predicted = ops.segment_max(found, other, num_segments=count)
        missed = ops.logical_and(true_areas > 0, matched_true <= 0)
        is_clear = void_areas <= 0.5 * predicted_areas
        made_up = ops.logical_and(
            ops.logical_and(predicted_areas > 0, matched_predicted <= 0), is_clear
        )
        shape = (self.num_categories + 1, self.max_num_instances)
        sums = [
            ops.segment_sum(values, category, num_segments=self.num_categories + 1)
            for values in (iou * found, found)
        ]
        sums += [
            ops.sum(ops.reshape(ops.cast(flags, "float32"), shape), axis=1)
            for flags in (made_up, missed)
        ]
        return ops.stack(sums)[:, :-1]

    def result(self) -> dict[str, Any]:
        iou, tp, fp, fn = ops.unstack(ops.convert_to_tensor(self.sums), 4)
        sq = iou / ops.maximum(tp, 1.0)
        rq = tp / ops.maximum(tp + 0.5 * fp + 0.5 * fn, 0.5)
        numbers = ops.arange(self.num_categories)
        is_met = ops.logical_and(tp + fp + fn > 0, numbers != self.ignored_label)
        things = self.is_thing or (True,) * self.num_categories
        is_thing = ops.convert_to_tensor(things, dtype="bool")
        return {
            "pq_per_class": ops.cast(sq * rq, self.dtype),
            "sq_per_class": ops.cast(sq, self.dtype),
            "rq_per_class": ops.cast(rq, self.dtype),
            "valid_thing_classes": ops.logical_and(is_met, is_thing),
            "valid_stuff_classes": ops.logical_and(is_met, ops.logical_not(is_thing)),
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_categories": self.num_categories,
            "is_thing": self.is_thing,
            "max_num_instances": self.max_num_instances,
            "ignored_label": self.ignored_label,
        }


PanopticQualityV2 = PanopticQualityMetric
"""Its name in the Model Garden."""
