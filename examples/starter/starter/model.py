"""The model: backbone, pooling, a dense layer."""

from typing import Any

import keras

from hortus.vision.modeling import backbones
from hortus.vision.modeling.backbones.backbone import FunctionalModel
from starter import config


@keras.saving.register_keras_serializable(package="Starter")
class StarterModel(FunctionalModel):
    """Maps images to logits [batch, classes].

    Args:
        backbone: a model from images to a dict of features by level.
        num_classes: length of the logits.
        dropout_rate: share of the pooled features dropped in training, 0 to 1.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self, backbone: keras.Model, num_classes: int, dropout_rate: float = 0.0, **kwargs: Any
    ):
        self.num_classes = num_classes
        self.dropout_rate = dropout_rate
        images = keras.Input(shape=backbone.input.shape[1:], name="images")
        features = backbone(images)
        x = features[max(features, key=int)]
        x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
        x = keras.layers.Dropout(dropout_rate, name="dropout")(x)
        # In float32 also where the rest is computed in half of that.
        logits = keras.layers.Dense(num_classes, dtype="float32", name="logits")(x)
        super().__init__(inputs=images, outputs=logits, **kwargs)
        self._backbone = backbone

    @property
    def backbone(self) -> keras.Model:
        """The feature extractor."""
        return self._backbone

    @property
    def checkpoint_items(self) -> dict[str, keras.Model]:
        """What can be loaded from a checkpoint by itself."""
        return {"backbone": self.backbone}


def build_starter_model(
    model_config: config.Model, l2_regularizer: keras.regularizers.Regularizer | None = None
) -> StarterModel:
    """The model that a config describes."""
    backbone = backbones.factory.build_backbone(
        input_specs=keras.layers.InputSpec(shape=[None, *model_config.input_size]),
        backbone_config=model_config.backbone,
        norm_activation_config=model_config.norm_activation,
        l2_regularizer=l2_regularizer,
    )
    return StarterModel(backbone, model_config.num_classes, model_config.dropout_rate)
