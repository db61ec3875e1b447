"""Features of regions, as a layer."""

from collections.abc import Mapping
from typing import Any

import keras

from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.ops.roi_align import multilevel_roi_align


@keras.saving.register_keras_serializable(package="Hortus")
class MultilevelROIAligner(Configurable, keras.layers.Layer):
    """Samples the features of each region from the level that fits its size (He et al. 2017).

    Args:
        crop_size: side of the grid of samples.
        sample_offset: where in its cell each sample lies: 0 at the upper left, 0.5 in the middle.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(self, crop_size: int = 7, sample_offset: float = 0.5, **kwargs: Any):
        # Features keep their type; coordinates of large images need theirs.
        super().__init__(**{"autocast": False, **kwargs})
        self.crop_size = crop_size
        self.sample_offset = sample_offset
        self.built = True

    def call(self, features: Mapping[str, Any], boxes: Any) -> Any:
        """Samples.

        Args:
            features: by level, (batch, height, width, channels).
            boxes: (batch, regions, 4), in pixels of the image.

        Returns:
            (batch, regions, crop_size, crop_size, channels), of the type of the features.
        """
        return multilevel_roi_align(features, boxes, self.crop_size, self.sample_offset)
