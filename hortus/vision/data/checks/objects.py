"""Where the objects of a data set are, in words."""

import numpy as np

from hortus.vision.dataloaders.detection.detection_set import DetectionSet


def describe_objects(data: DetectionSet, chosen: np.ndarray) -> list[str]:
    """Image, number, category and box of some objects.

    Args:
        data: the data set.
        chosen: which of its objects, bool [m].
    """
    images = data.images_of_objects
    texts = []
    for row in np.flatnonzero(chosen):
        top, left, bottom, right = (f"{edge:g}" for edge in data.boxes[row])
        place = data.categories[row]
        name = data.category_names[place] if place >= 0 else "unknown category"
        height, width = data.sizes[images[row]]
        number = "" if data.object_ids is None else f"annotation {data.object_ids[row]}, "
        texts.append(
            f"{data.paths[images[row]]}: {number}{name} x {left} to {right}, y {top} to {bottom} "
            f"(image {width} x {height})"
        )
    return texts
