"""RetinaNet: backbone, decoder, and a head that looks at every level (Lin et al. 2017)."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from hortus.vision.modeling.importing import ImportsWeights
from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.modeling.layers.detection.detection_generator import MultilevelDetectionGenerator
from hortus.vision.ops.anchors import AnchorGenerator


@keras.saving.register_keras_serializable(package="Hortus")
class RetinaNetModel(ImportsWeights, Configurable, keras.Model):
    """Maps images (batch, height, width, channels) to objects.

    All variables exist once it is made.

    Args:
        backbone: a model from images to features by level, with `output_specs`.
        decoder: a model from those to features of `min_level` to `max_level`, with `output_specs`;
            None where the backbone has these levels itself.
        head: a layer from features by level to scores, boxes and attributes by level.
        detection_generator: a layer from those to detections.
        min_level: finest level that is searched.
        max_level: coarsest level that is searched.
        num_scales: sizes of the anchors of each level, spread over one octave.
        aspect_ratios: width / height of the anchors of each size.
        anchor_size: side of the smallest square anchor, in places of its level.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        backbone: keras.Model,
        decoder: keras.Model | None,
        head: keras.layers.Layer,
        detection_generator: MultilevelDetectionGenerator,
        min_level: int,
        max_level: int,
        num_scales: int = 3,
        aspect_ratios: Sequence[float] = (0.5, 1.0, 2.0),
        anchor_size: float = 4.0,
        **kwargs: Any,
    ):
        # The layers cast images by themselves; sizes and anchors must keep their precision.
        super().__init__(**{"autocast": False, **kwargs})
        self.backbone = backbone
        self.decoder = decoder
        self.head = head
        self.detection_generator = detection_generator
        self.min_level = min_level
        self.max_level = max_level
        self.num_scales = num_scales
        self.aspect_ratios = tuple(aspect_ratios)
        self.anchor_size = anchor_size
        specs = backbone.output_specs if decoder is None else decoder.output_specs
        if not head.built:
            head.build(self._searched(specs))
        self.built = True

    @property
    def anchors(self) -> AnchorGenerator:
        """Makes the anchors of an image."""
        return AnchorGenerator(
            self.min_level,
            self.max_level,
            self.num_scales,
            self.aspect_ratios,
            self.anchor_size,
        )

    @property
    def checkpoint_items(self) -> dict[str, Any]:
        """What can be loaded from a checkpoint by itself."""
        items = {"backbone": self.backbone, "decoder": self.decoder, "head": self.head}
        return {name: item for name, item in items.items() if item is not None}

    def call(
        self,
        images: Any,
        image_shape: Any = None,
        anchor_boxes: Mapping[str, Any] | None = None,
        output_intermediate_features: bool = False,
        training: bool | None = None,
    ) -> dict[str, Any]:
        """Looks for objects.

        Args:
            images: (batch, height, width, channels).
            image_shape: (batch, 2), height and width of what the images show, in pixels, where
                they are padded; detections end there. By default all of it counts.
            anchor_boxes: by level, (height, width, anchors * 4), or the same for each image; by
                default those that `anchors` makes.
            output_intermediate_features: return the features too.
            training: normalise by the batch's own statistics, and leave out the detections.

        Returns:
            `cls_outputs`, logits {level: (batch, height, width, anchors * classes)}, `box_outputs`,
            codes {level: (batch, height, width, anchors * 4)}, and, with attributes,
            `attribute_outputs`, {name: {level: (batch, height, width, anchors * size)}}. Outside of
            training also what the detection generator returns. The features, where they are asked
            for, are `backbone_<level>` and `decoder_<level>`.
        """
        features = self.backbone(images, training=training)
        outputs: dict[str, Any] = {}
        if output_intermediate_features:
            outputs |= {f"backbone_{level}": x for level, x in features.items()}
        if self.decoder is not None:
            features = self.decoder(features, training=training)
            if output_intermediate_features:
                outputs |= {f"decoder_{level}": x for level, x in features.items()}

        scores, boxes, attributes = self.head(self._searched(features), training=training)
        outputs |= {"cls_outputs": scores, "box_outputs": boxes}
        if attributes:
            outputs["attribute_outputs"] = attributes
        if training:
            return outputs

        image_size = ops.shape(images)[1:3]
        if anchor_boxes is None:
            anchor_boxes = self.anchors(image_size)
        if image_shape is None:
            image_shape = image_size
        found = self.detection_generator(
            boxes, scores, anchor_boxes, image_shape=image_shape, raw_attributes=attributes
        )
        return outputs | found

    def _searched(self, features: Mapping[str, Any]) -> dict[str, Any]:
        levels = [str(level) for level in range(self.min_level, self.max_level + 1)]
        missing = [level for level in levels if level not in features]
        if missing:
            raise ValueError(
                f"levels {self.min_level} to {self.max_level} are to be searched "
                f"(task.model.min_level, max_level), but there are features of levels "
                f"{', '.join(features)} only: choose other levels, or a decoder that makes them"
            )
        return {level: features[level] for level in levels}
