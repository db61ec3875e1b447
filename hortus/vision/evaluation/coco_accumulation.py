"""From matches to precision and recall, as COCO counts them."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from hortus.vision.evaluation.coco_matching import Detections, Objects, Overlap, match

THRESHOLDS = np.linspace(0.5, 0.95, 10)
"""Of the IoU."""
RECALLS = np.linspace(0.0, 1.0, 101)
"""At which precision is read."""
AREA_RANGES = {
    "all": (0.0, 1e10),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e10),
}
"""In pixels."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Precision and recall of k categories; -1 where there is nothing to find."""

    precision: np.ndarray
    """By threshold, recall, category and area range, [t, 101, k, a]."""
    scores: np.ndarray
    """Score at which that recall is reached, [t, 101, k, a]; 0 where it is not."""
    recall: np.ndarray
    """By threshold, category, area range and number of detections, [t, k, a, m]."""
    max_detections: tuple[int, ...]
    """Numbers of detections per image and category, rising, [m]."""
    num_objects: np.ndarray
    """That count, by category, int64 [k]."""

    def average_precision(
        self, threshold: float | None = None, area: str = "all", category: int | None = None
    ) -> float:
        """Mean precision over recalls, categories and thresholds; or of one of these; or -1."""
        values = self.precision[_threshold_rows(threshold), :, :, _area_column(area)]
        return _mean(values if category is None else values[:, :, category])

    def average_recall(
        self, max_detections: int | None = None, area: str = "all", category: int | None = None
    ) -> float:
        """Mean recall over categories and thresholds with the best detections; or -1."""
        column = -1 if max_detections is None else self.max_detections.index(max_detections)
        values = self.recall[:, :, _area_column(area), column]
        return _mean(values if category is None else values[:, category])


def evaluate(
    objects: Objects,
    detections: Detections,
    num_categories: int,
    max_detections: Sequence[int] = (1, 10, 100),
    overlap: Overlap | None = None,
) -> Evaluation:
    """Precision and recall of detections, see `coco_matching.match` for the rules."""
    limits = tuple(sorted(set(max_detections)))
    ranges = np.array(list(AREA_RANGES.values()))
    matches = match(objects, detections, THRESHOLDS, ranges, limits[-1], overlap)
    shape = (len(THRESHOLDS), len(RECALLS), num_categories, len(ranges))
    precision, scores = np.full(shape, -1.0), np.full(shape, -1.0)
    recall = np.full((len(THRESHOLDS), num_categories, len(ranges), len(limits)), -1.0)

    counted = (
        ~objects.is_ignored & (objects.areas >= ranges[:, :1]) & (objects.areas <= ranges[:, 1:])
    )
    totals = np.stack(
        [np.bincount(objects.categories[row], minlength=num_categories) for row in counted]
    )
    all_scores, categories = detections.scores[matches.rows], detections.categories[matches.rows]
    # Matches come by image: equal scores stay in the order of the images.
    order = np.lexsort((-all_scores, categories))
    borders = np.searchsorted(categories[order], np.arange(num_categories + 1))
    for category in range(num_categories):
        chosen = order[borders[category] : borders[category + 1]]
        ranks = matches.ranks[chosen]
        found, ignored = matches.found[:, :, chosen], matches.ignored[:, :, chosen]
        for area, total in enumerate(totals[:, category]):
            if not total:
                continue
            right = found[:, area] & ~ignored[:, area]
            wrong = ~found[:, area] & ~ignored[:, area]
            for column, limit in enumerate(limits):
                recall[:, category, area, column] = np.sum(right & (ranks < limit), axis=1) / total
            precision[:, :, category, area], scores[:, :, category, area] = _curves(
                right, wrong, all_scores[chosen], total
            )
    return Evaluation(precision, scores, recall, limits, totals[0])


def _curves(
    right: np.ndarray, wrong: np.ndarray, scores: np.ndarray, total: int
) -> tuple[np.ndarray, np.ndarray]:
    """Precision and score at the recalls.

    Args:
        right: which detections are right, best first, [t, n].
        wrong: which are wrong; some are neither, [t, n].
        scores: [n].
        total: number of objects.

    Returns:
        Best precision at this recall or a higher one, and score, [t, 101] each.
    """
    precision, at_score = (np.zeros((len(right), len(RECALLS))) for _ in range(2))
    if not right.shape[1]:
        return precision, at_score
    hits, misses = np.cumsum(right, axis=1), np.cumsum(wrong, axis=1)
    shares = hits / (hits + misses + np.spacing(1))
    shares = np.maximum.accumulate(shares[:, ::-1], axis=1)[:, ::-1]
    recalls = hits / total
    for row, reached in enumerate(recalls):
        places = np.searchsorted(reached, RECALLS, side="left")
        valid = places < len(reached)
        precision[row, valid] = shares[row, places[valid]]
        at_score[row, valid] = scores[places[valid]]
    return precision, at_score


def _threshold_rows(threshold: float | None) -> np.ndarray:
    if threshold is None:
        return np.arange(len(THRESHOLDS))
    return np.flatnonzero(np.isclose(THRESHOLDS, threshold))


def _area_column(area: str) -> int:
    return list(AREA_RANGES).index(area)


def _mean(values: np.ndarray) -> float:
    known = values[values > -1]
    return float(np.mean(known)) if known.size else -1.0
