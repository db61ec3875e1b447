"""Image classification: backbone, pooling, one dense layer."""

from typing import Any

import keras

from hortus.vision.modeling.backbones.backbone import IMAGES, FunctionalModel
from hortus.vision.modeling.layers.blocks.block import fresh_initializer
from hortus.vision.modeling.layers.normalization.norm_act import NormAct

_POOLS = {3: keras.layers.GlobalAveragePooling1D, 4: keras.layers.GlobalAveragePooling2D}
_TOKEN_ENDPOINTS = ("pre_logits", "encoded_tokens")


@keras.saving.register_keras_serializable(package="Hortus")
class ClassificationModel(FunctionalModel):
    """Maps images to logits [batch, classes].

    It looks at the backbone's last features: those of the highest level, or the tokens of a
    transformer.

    Args:
        backbone: a model from images to a dict of features.
        num_classes: length of the logits.
        input_specs: shape of the images, batch first.
        dropout_rate: share of the pooled features dropped in training, 0 to 1.
        kernel_initializer: of the dense layer.
        kernel_regularizer: of the dense layer, or None.
        bias_regularizer: of the dense layer, or None.
        add_head_batch_norm: normalise the features before they are pooled.
        norm_act: makes that normalisation.
        skip_logits_layer: return the pooled features, without dropout and dense layer.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        backbone: keras.Model,
        num_classes: int,
        input_specs: keras.layers.InputSpec = IMAGES,
        dropout_rate: float = 0.0,
        kernel_initializer: Any = "random_uniform",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        add_head_batch_norm: bool = False,
        norm_act: NormAct | None = None,
        skip_logits_layer: bool = False,
        **kwargs: Any,
    ):
        if num_classes < 1 and not skip_logits_layer:
            raise ValueError(
                f"a classifier needs at least one class, got num_classes {num_classes}: set "
                "task.model.num_classes"
            )
        self.num_classes = num_classes
        self.input_specs = input_specs
        self.dropout_rate = dropout_rate
        self.kernel_initializer = kernel_initializer
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.add_head_batch_norm = add_head_batch_norm
        self.norm_act = norm_act or NormAct()
        self.skip_logits_layer = skip_logits_layer

        inputs = keras.Input(shape=input_specs.shape[1:], name="images")
        x = last_features(backbone(inputs))
        if add_head_batch_norm:
            x = self.norm_act.norm(name="head_norm")(x)
        x = _POOLS[len(x.shape)](name="pool")(x)
        if not skip_logits_layer:
            x = keras.layers.Dropout(dropout_rate, name="dropout")(x)
            x = keras.layers.Dense(
                num_classes,
                kernel_initializer=fresh_initializer(kernel_initializer),
                kernel_regularizer=self.kernel_regularizer,
                bias_regularizer=self.bias_regularizer,
                name="logits",
            )(x)
        super().__init__(inputs=inputs, outputs=x, **kwargs)
        self._backbone = backbone

    @property
    def backbone(self) -> keras.Model:
        """The feature extractor."""
        return self._backbone

    @property
    def checkpoint_items(self) -> dict[str, keras.Model]:
        """What can be loaded from a checkpoint by itself."""
        return {"backbone": self.backbone}


def last_features(features: dict[str, Any]) -> Any:
    """The features to classify by: a transformer's tokens, else those of the highest level."""
    for name in _TOKEN_ENDPOINTS:
        if name in features:
            return features[name]
    levels = [level for level in features if level.isdigit()]
    if not levels:
        raise ValueError(
            f"the backbone has no features to classify by: expected levels such as '5', or "
            f"'pre_logits', got {sorted(features)}"
        )
    return features[max(levels, key=int)]
