"""From the categories of a data set to the class numbers of a model."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from hortus.vision.dataloaders.errors import DataError

COCO_IDS = (
    *range(1, 12),
    *range(13, 26),
    *(27, 28),
    *range(31, 45),
    *range(46, 66),
    *(67, 70),
    *range(72, 83),
    *range(84, 91),
)
"""Ids of the 80 categories of COCO's detection task; 10 numbers below 91 were never used."""


@dataclasses.dataclass(frozen=True)
class Classes:
    """Which class number each category has. 0 is the background."""

    names: tuple[str, ...]
    """Of the classes 1, 2, ..."""
    number_of: Mapping[int, int]
    """Class numbers by category id."""

    def numbers_of(self, category_ids: Sequence[int]) -> np.ndarray:
        """int64, one per id."""
        return np.array([self.number_of[one] for one in category_ids], np.int64)


def number_classes(
    ids: Sequence[int],
    names: Sequence[str],
    num_classes: int = 0,
    class_names: Sequence[str] = (),
    origin: str = "the data",
) -> Classes:
    """Gives class numbers to categories.

    They count from 1 in the order of the ids. Ids with gaps are kept as they are where the model
    has a class for each: COCO's 80 categories keep their ids up to 90 in a model of 91 classes, the
    custom of files of records and of weights that others trained.

    Args:
      ids: category ids.
      names: their names.
      num_classes: classes of the model, the background included; 0 for any.
      class_names: names of the classes 1, 2, ... that the model has learnt; categories are found
        among them by name. Empty goes by the ids.
      origin: where the categories come from, for messages.

    Raises:
      DataError: the categories are not those of the model.
    """
    if class_names:
        return _by_name(ids, names, class_names, origin)
    order = sorted(range(len(ids)), key=lambda place: ids[place])
    ids, names = [ids[place] for place in order], [names[place] for place in order]
    if num_classes and len(ids) > num_classes - 1:
        raise DataError(
            f"{origin} has {len(ids)} categories ({_shown(names)}), but the model has "
            f"{max(num_classes - 1, 0)} classes beside the background: set "
            f"task.model.num_classes={len(ids) + 1}"
        )
    is_kept = bool(ids) and ids[0] >= 1 and ids[-1] < num_classes
    if not is_kept:
        return Classes(tuple(names), {one: place + 1 for place, one in enumerate(ids)})
    by_id = dict(zip(ids, names, strict=True))
    all_names = tuple(by_id.get(number, f"unused {number}") for number in range(1, ids[-1] + 1))
    return Classes(all_names, {one: one for one in ids})


def _by_name(
    ids: Sequence[int], names: Sequence[str], class_names: Sequence[str], origin: str
) -> Classes:
    numbers = {name: number for number, name in enumerate(class_names, start=1)}
    unknown = [name for name in names if name not in numbers]
    if unknown:
        raise DataError(
            f"{origin}: the categories {_shown(unknown)} are not among the classes of the model: "
            f"{_shown(class_names)}"
        )
    number_of = {one: numbers[name] for one, name in zip(ids, names, strict=True)}
    return Classes(tuple(class_names), number_of)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(str, names[:10])) + (", ..." if len(names) > 10 else "")
