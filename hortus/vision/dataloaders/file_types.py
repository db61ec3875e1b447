"""Kinds of files that data is read from directly, by the name that `file_type` has in configs."""

from collections.abc import Callable
from typing import Any, TypeVar

from hortus import registry

_Reader = TypeVar("_Reader", bound=Callable[..., Any])

CLASSIFICATION = registry.Registry(
    "file type of classification", "hortus.vision.dataloaders.classification"
)
DETECTION = registry.Registry("file type of detection", "hortus.vision.dataloaders.detection")
SEGMENTATION = registry.Registry(
    "file type of segmentation", "hortus.vision.dataloaders.segmentation"
)
RECORDS = {"tfrecord": "", "tfrecord_compressed": "GZIP"}
"""Files of records, which all tasks read, and how they are compressed."""


def register_classification_files(name: str) -> Callable[[_Reader], _Reader]:
    """Decorates the function that reads images with classes, for `file_type: <name>`.

        @file_types.register_classification_files("flat")
        def read_flat(input_path, params):
            '''Files in one folder, named class_number.png.'''
            paths = sorted(glob.glob(os.path.join(input_path, "*.png")))
            names = [os.path.basename(path).split("_")[0] for path in paths]
            return LabelledImages(paths, [(name,) for name in names], sorted(set(names)))

    The function receives:
        input_path: a path or a list of them, from the data config.
        params: the data config.

    It returns a `hortus.vision.dataloaders.image_files.LabelledImages`.
    """
    return registry.register(CLASSIFICATION, name)


def register_detection_files(name: str) -> Callable[[_Reader], _Reader]:
    """Decorates the function that reads images with boxes, for `file_type: <name>`.

    The function receives:
        input_path: a path or a list of them, from the data config.
        params: the data config.
        include_masks: whether the model learns masks, so that they are wanted too.

    It returns a `hortus.vision.dataloaders.detection.detection_set.DetectionSet`.
    """
    return registry.register(DETECTION, name)


def register_segmentation_files(name: str) -> Callable[[_Reader], _Reader]:
    """Decorates the function that reads images with masks, for `file_type: <name>`.

    The function receives:
        input_path: a path or a list of them, from the data config.
        params: the data config.
        mask_path: the part of `params.mask_path` that belongs to `input_path`; may be None.

    It returns a `hortus.vision.dataloaders.segmentation.mask_files.MaskedImages`.
    """
    return registry.register(SEGMENTATION, name)


def names(known: registry.Registry) -> list[str]:
    """All values that `file_type` can have for a task: files of records, and those of a table."""
    known.load()
    return [*RECORDS, *known]
