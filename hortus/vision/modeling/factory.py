"""Builds models from configs."""

import keras

from hortus.vision.configs import image_classification as classification_configs
from hortus.vision.modeling import backbones
from hortus.vision.modeling.classification_model import ClassificationModel
from hortus.vision.modeling.layers.norm_act import NormAct


def build_classification_model(
    input_specs: keras.layers.InputSpec,
    model_config: classification_configs.ImageClassificationModel,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
    skip_logits_layer: bool = False,
    backbone: keras.Model | None = None,
) -> ClassificationModel:
    """Builds an image classifier.

    Args:
        input_specs: shape of the images, batch first.
        model_config: what to build.
        l2_regularizer: of the kernels, or None.
        skip_logits_layer: return pooled features instead of logits.
        backbone: instead of the one that the config names.
    """
    norm_activation = model_config.norm_activation
    if backbone is None:
        backbone = backbones.factory.build_backbone(
            input_specs=input_specs,
            backbone_config=model_config.backbone,
            norm_activation_config=norm_activation,
            l2_regularizer=l2_regularizer,
        )
    return ClassificationModel(
        backbone=backbone,
        num_classes=model_config.num_classes,
        input_specs=input_specs,
        dropout_rate=model_config.dropout_rate,
        kernel_initializer=model_config.kernel_initializer,
        kernel_regularizer=l2_regularizer,
        add_head_batch_norm=model_config.add_head_batch_norm,
        norm_act=NormAct.from_config(norm_activation),
        skip_logits_layer=skip_logits_layer,
    )
