"""Semantic segmentation: backbone, decoder, a head that classifies pixels."""

from typing import Any

import keras

from hortus.vision.modeling.backbones.backbone import FunctionalModel


@keras.saving.register_keras_serializable(package="Hortus")
class SegmentationModel(FunctionalModel):
    """Maps images to the classes of their pixels.

    The output is a dict: `logits`, [batch, height, width, classes], usually smaller than the
    images, and with a mask scoring head `mask_scores`, [batch, classes].

    Args:
        backbone: a model from images to a dict of features by level.
        decoder: a model from such features to others, or None for none.
        head: a layer from the features of both, as a pair, to logits.
        mask_scoring_head: a layer from logits to a score per class, or None for none.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        backbone: keras.Model,
        decoder: keras.Model | None,
        head: keras.layers.Layer,
        mask_scoring_head: keras.layers.Layer | None = None,
        **kwargs: Any,
    ):
        images = keras.Input(shape=backbone.input.shape[1:], name="images")
        features = backbone(images)
        decoded = features if decoder is None else decoder(features)
        logits = head((features, decoded))
        outputs = {"logits": logits}
        if mask_scoring_head is not None:
            outputs["mask_scores"] = mask_scoring_head(logits)
        super().__init__(inputs=images, outputs=outputs, **kwargs)
        self._backbone, self._decoder = backbone, decoder
        self._head, self._mask_scoring_head = head, mask_scoring_head

    @property
    def backbone(self) -> keras.Model:
        """The feature extractor."""
        return self._backbone

    @property
    def decoder(self) -> keras.Model | None:
        """What works on its features, if anything does."""
        return self._decoder

    @property
    def head(self) -> keras.layers.Layer:
        """What classifies pixels."""
        return self._head

    @property
    def mask_scoring_head(self) -> keras.layers.Layer | None:
        """What judges the masks, if anything does."""
        return self._mask_scoring_head

    @property
    def checkpoint_items(self) -> dict[str, keras.layers.Layer]:
        """What can be loaded from a checkpoint by itself."""
        items = {
            "backbone": self.backbone,
            "decoder": self.decoder,
            "head": self.head,
            "mask_scoring_head": self.mask_scoring_head,
        }
        return {name: item for name, item in items.items() if item is not None}
