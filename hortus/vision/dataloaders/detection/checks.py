"""A look at detection data before training: what would end in an average precision of 0.

Nothing here opens more than a few images. `hortus data check` looks at all of them.
"""

import logging
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from hortus.vision.configs import detection as configs
from hortus.vision.dataloaders.detection.coco_files import size_of_file
from hortus.vision.dataloaders.detection.detection_set import DetectionSet, missing_files
from hortus.vision.dataloaders.errors import DataError, near_paths
from hortus.vision.dataloaders.sources.base import Shard, Source

_OPENED = 32
"""Images that are opened to see whether their size is what the annotations say."""
_MOST_OUTSIDE = 0.5
_MANY_OUTSIDE = 0.1
"""Share of boxes beyond their image that makes an error, and a warning."""
_RECORDS = 16
"""Records that are looked at."""

_log = logging.getLogger(__name__)


def check_settings(params: configs.DataConfig, model: configs.DetectionModel) -> None:
    """Raises where the settings of the input and of the model do not fit together."""
    if len(model.input_size) != 3 or not all(model.input_size[:2]):
        raise DataError(
            f"task.model.input_size must be [height, width, channels], got {model.input_size}"
        )
    channels = params.parser.num_channels
    if model.input_size[2] != channels:
        raise DataError(
            f"parser.num_channels is {channels}, but task.model.input_size has "
            f"{model.input_size[2]} channels: set both to 1 for grey images, to 3 for colour"
        )
    kind = params.parser.aug_type.type if params.parser.aug_type else None
    if channels != 3 and params.is_training and kind in ("autoaug", "randaug"):
        raise DataError(f"aug_type {kind} is for images of 3 channels, not {channels}")


def check_set(data: DetectionSet, params: configs.DataConfig) -> DetectionSet:
    """Raises, or warns, where the data cannot be learnt from or measured on.

    Returns:
      The data, without images that are not there if the config says to skip what cannot be read.
    """
    data = _check_files(data, params)
    _check_categories(data)
    if not len(data.boxes):
        raise DataError(f"{data.origin}: none of its {len(data)} images has an object")
    _check_units(data)
    _check_extents(data, bool(params.is_training))
    _check_masks(data, params)
    _check_sizes(data)
    _check_counts(data, params)
    return data


def _check_files(data: DetectionSet, params: configs.DataConfig) -> DetectionSet:
    missing = missing_files(data.paths)
    if not missing:
        return data
    first = data.paths[missing[0]]
    text = f"{data.origin}: {len(missing)} of {len(data)} images are not there, such as {first}"
    if not params.skip_bad_records or len(missing) == len(data):
        raise DataError(f"{text}{near_paths(first)}")
    _log.warning("%s; they are left out", text)
    return data.select(np.setdiff1d(np.arange(len(data)), missing))


def _check_categories(data: DetectionSet) -> None:
    unknown = int(np.sum(data.categories < 0))
    if unknown:
        known = ", ".join(map(str, data.category_ids[:20]))
        raise DataError(
            f"{data.origin}: {unknown} of {len(data.categories)} objects have a category_id that "
            f"is not among its categories ({known})"
        )


def _check_units(data: DetectionSet) -> None:
    if np.nanmax(np.abs(data.boxes), initial=0.0) <= 1.0 and np.max(data.sizes) > 1:
        raise DataError(
            f"{data.origin}: all boxes lie between 0 and 1, so they seem to be shares of the image "
            "size, where pixels are expected: multiply them by the width and height of their image"
        )


def _check_extents(data: DetectionSet, is_training: bool) -> None:
    empty = int(np.sum(data.is_empty()))
    if empty:
        _log.warning(
            "%s: %d of %d boxes have no area, or are no numbers; %s",
            data.origin,
            empty,
            len(data.boxes),
            "they are left out" if is_training else "they cannot be found, and count as missed",
        )
    outside = int(np.sum(data.is_outside(tolerance=2.0)))
    share = outside / len(data.boxes)
    if share > _MOST_OUTSIDE:
        raise DataError(
            f"{data.origin}: {outside} of {len(data.boxes)} boxes reach beyond their image. They "
            "must be pixels of the image as it is stored; in COCO's files they are [x, y, width, "
            "height], not two corners"
        )
    if share > _MANY_OUTSIDE:
        _log.warning(
            "%s: %d of %d boxes reach beyond their image and are cut there",
            data.origin,
            outside,
            len(data.boxes),
        )


def _check_masks(data: DetectionSet, params: configs.DataConfig) -> None:
    if data.masks is None:
        return
    if data.mask_problems:
        text = f"{len(data.mask_problems)} masks cannot be read, such as {data.mask_problems[0]}"
        if not params.skip_bad_records:
            raise DataError(
                f"{text}. Mend them, or set skip_bad_records=true to take them for empty"
            )
        _log.warning("%s: %s; they count as empty", data.origin, text)
    missing = int(np.sum([not code for code in data.masks]))
    if missing == len(data.masks):
        raise DataError(
            f"{data.origin}: none of its {missing} objects has a mask. For a model of boxes alone "
            "set task.model.include_mask=false"
        )
    if missing:
        _log.warning(
            "%s: %d of %d objects have no mask, or one without pixels; the model learns that they "
            "are empty, unless task.allowed_mask_class_ids leaves their classes out",
            data.origin,
            missing,
            len(data.masks),
        )


def _check_sizes(data: DetectionSet) -> None:
    """Opens a few images, spread over the set."""
    for number in np.unique(np.linspace(0, len(data) - 1, _OPENED).astype(int)):
        path = data.paths[number]
        if "://" in path:
            continue
        try:
            found = size_of_file(path)
        except DataError:
            continue  # The reader names it, or skips it and counts.
        told = tuple(int(side) for side in data.sizes[number])
        if found != told:
            raise DataError(size_conflict(data.origin, path, told, found))


def size_conflict(origin: str, path: str, told: Sequence[int], found: Sequence[int]) -> str:
    """What to say about an image that has not the size its annotation tells, (height, width)."""
    text = (
        f"{path} has {found[1]} x {found[0]} pixels (width x height), but {origin} says "
        f"{told[1]} x {told[0]}: its boxes may not fit"
    )
    if tuple(found) == tuple(told)[::-1]:
        text += ". Perhaps the file is stored on its side (EXIF orientation): save it upright"
    return text


def _check_counts(data: DetectionSet, params: configs.DataConfig) -> None:
    unannotated = int(np.sum(data.counts == 0))
    if unannotated:
        _log.info(
            "%s: %d of %d images have no objects; they are kept, as examples of background",
            data.origin,
            unannotated,
            len(data),
        )
    most = params.parser.max_num_instances
    over = data.counts > most
    if params.is_training and np.any(over):
        _log.warning(
            "%s: %d images have more than %d objects, up to %d; %d objects are left out. Set "
            "parser.max_num_instances=%d to keep all",
            data.origin,
            int(np.sum(over)),
            most,
            int(np.max(data.counts)),
            int(np.sum(data.counts[over] - most)),
            int(np.max(data.counts)),
        )
    size = params.global_batch_size
    if not params.is_training and params.drop_remainder and size > 0 and len(data) % size:
        _log.warning(
            "%s: %d of %d images are not evaluated, as they do not fill a batch of %d: set "
            "drop_remainder=false",
            data.origin,
            len(data) % size,
            len(data),
            size,
        )


def check_classes(names: Sequence[str], num_classes: int, origin: str) -> None:
    """Raises where the data has more classes than the model, warns where it has less."""
    if not num_classes or not names:
        return
    if len(names) > num_classes - 1:
        raise DataError(
            f"{origin} has {len(names)} classes, but the model has {num_classes - 1} beside the "
            f"background: set task.model.num_classes={len(names) + 1}"
        )
    if len(names) < num_classes - 1:
        _log.warning(
            "%s has %d classes, but the model has %d beside the background; the others can learn "
            "nothing. For a model that fits, set task.model.num_classes=%d",
            origin,
            len(names),
            num_classes - 1,
            len(names) + 1,
        )


def check_records(source: Source, num_classes: int) -> None:
    """Looks at the first records of a source; raises where their classes are not the model's.

    Whatever else is wrong with them, the reader says with the record's place.
    """
    classes: list[np.ndarray] = []
    count = 0
    try:
        for reference in source.one_pass(Shard(), None).take(_RECORDS):
            count += 1
            classes.append(source.load(reference)["groundtruth_classes"].numpy())
    except tf.errors.OpError:
        return
    if not count:
        raise DataError("there are no records in the data")
    found = np.concatenate(classes)
    if num_classes and len(found) and (found.min() < 1 or found.max() >= num_classes):
        raise DataError(
            f"the records have classes from {found.min()} to {found.max()}, but the model has "
            f"those from 1 to {num_classes - 1}"
            + (
                "; 0 is the background, so that classes of objects must start at 1"
                if found.min() < 1
                else f": set task.model.num_classes={found.max() + 1} or more"
            )
        )
