"""Builds models from configs."""

from typing import Any

import keras

from hortus.vision.configs import image_classification as classification_configs
from hortus.vision.configs import retinanet as retinanet_configs
from hortus.vision.configs import semantic_segmentation as segmentation_configs
from hortus.vision.modeling import backbones, decoders, heads
from hortus.vision.modeling.classification_model import ClassificationModel
from hortus.vision.modeling.layers.detection.detection_generator import MultilevelDetectionGenerator
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.retinanet_model import RetinaNetModel
from hortus.vision.modeling.segmentation_model import SegmentationModel


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
    if backbone is None:
        backbone = _build_backbone(input_specs, model_config, l2_regularizer)
    return ClassificationModel(
        backbone=backbone,
        num_classes=model_config.num_classes,
        input_specs=input_specs,
        dropout_rate=model_config.dropout_rate,
        kernel_initializer=model_config.kernel_initializer,
        kernel_regularizer=l2_regularizer,
        add_head_batch_norm=model_config.add_head_batch_norm,
        norm_act=NormAct.from_config(model_config.norm_activation),
        skip_logits_layer=skip_logits_layer,
    )


def build_segmentation_model(
    input_specs: keras.layers.InputSpec,
    model_config: segmentation_configs.SemanticSegmentationModel,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
    backbone: keras.Model | None = None,
    decoder: keras.Model | None = None,
) -> SegmentationModel:
    """Builds a model that classifies pixels.

    Args:
        input_specs: shape of the images, batch first; height and width may be None.
        model_config: what to build.
        l2_regularizer: of the kernels, or None.
        backbone: instead of the one that the config names.
        decoder: instead of the one that the config names.
    """
    if model_config.num_classes < 1:
        raise ValueError(
            "segmentation needs at least one class, got num_classes "
            f"{model_config.num_classes}: set task.model.num_classes"
        )
    if backbone is None:
        backbone = _build_backbone(input_specs, model_config, l2_regularizer)
    if decoder is None:
        decoder = _build_decoder(backbone, model_config, l2_regularizer)
    common: dict[str, Any] = {
        "num_classes": model_config.num_classes,
        "norm_act": NormAct.from_config(model_config.norm_activation),
        "kernel_regularizer": l2_regularizer,
    }
    mask_scoring_head = None
    if model_config.mask_scoring_head is not None:
        mask_scoring_head = heads.MaskScoring(
            **model_config.mask_scoring_head.as_dict(), **common, name="mask_scoring_head"
        )
    return SegmentationModel(
        backbone=backbone,
        decoder=decoder,
        head=heads.SegmentationHead(**model_config.head.as_dict(), **common, name="head"),
        mask_scoring_head=mask_scoring_head,
    )


def build_retinanet(
    input_specs: keras.layers.InputSpec,
    model_config: retinanet_configs.RetinaNet,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
    backbone: keras.Model | None = None,
    decoder: keras.Model | None = None,
) -> RetinaNetModel:
    """Builds a one-stage detector, with all of its variables.

    Args:
        input_specs: shape of the images, batch first.
        model_config: what to build.
        l2_regularizer: of the kernels, or None.
        backbone: instead of the one that the config names.
        decoder: instead of the one that the config names.
    """
    if model_config.num_classes < 2:
        raise ValueError(
            "a detector needs the background, class 0, and at least one more class, got "
            f"num_classes {model_config.num_classes}: set task.model.num_classes to the number of "
            "classes of objects plus 1"
        )
    if backbone is None:
        backbone = _build_backbone(input_specs, model_config, l2_regularizer)
    if decoder is None:
        decoder = _build_decoder(backbone, model_config, l2_regularizer)
    anchor, head = model_config.anchor, model_config.head
    return RetinaNetModel(
        backbone=backbone,
        decoder=decoder,
        head=heads.RetinaNetHead(
            min_level=model_config.min_level,
            max_level=model_config.max_level,
            num_classes=model_config.num_classes,
            num_anchors_per_location=anchor.num_scales * len(anchor.aspect_ratios),
            num_convs=head.num_convs,
            num_filters=head.num_filters,
            attribute_heads=head.attribute_heads,
            share_classification_heads=head.share_classification_heads,
            use_separable_conv=head.use_separable_conv,
            share_level_convs=head.share_level_convs is not False,
            norm_act=NormAct.from_config(model_config.norm_activation),
            kernel_regularizer=l2_regularizer,
            name="head",
        ),
        detection_generator=_detection_generator(model_config),
        min_level=model_config.min_level,
        max_level=model_config.max_level,
        num_scales=anchor.num_scales,
        aspect_ratios=anchor.aspect_ratios,
        anchor_size=anchor.anchor_size,
    )


def _detection_generator(
    model_config: retinanet_configs.RetinaNet,
) -> MultilevelDetectionGenerator:
    config = model_config.detection_generator
    settings: dict[str, Any] = {
        "pre_nms_score_threshold": config.pre_nms_score_threshold,
        "nms_iou_threshold": config.nms_iou_threshold,
        "max_num_detections": config.max_num_detections,
        "box_coder_weights": config.box_coder_weights,
        "use_class_agnostic_nms": bool(config.use_class_agnostic_nms),
    }
    if config.nms_version == "tflite":
        mobile = config.tflite_post_processing
        settings |= {
            "pre_nms_score_threshold": mobile.nms_score_threshold,
            "nms_iou_threshold": mobile.nms_iou_threshold,
            "max_num_detections": mobile.max_detections,
            "box_coder_weights": [mobile.y_scale, mobile.x_scale, mobile.h_scale, mobile.w_scale],
            # Its fast way looks at the best class of each box only.
            "use_class_agnostic_nms": not mobile.use_regular_nms,
        }
    return MultilevelDetectionGenerator(
        num_classes=model_config.num_classes,
        apply_nms=config.apply_nms,
        pre_nms_top_k=config.pre_nms_top_k,
        nms_version=config.nms_version,
        soft_nms_sigma=config.soft_nms_sigma,
        decode_boxes=config.decode_boxes,
        return_decoded=bool(config.return_decoded),
        name="detections",
        **settings,
    )


def _build_backbone(
    input_specs: keras.layers.InputSpec,
    model_config: Any,
    l2_regularizer: keras.regularizers.Regularizer | None,
) -> keras.Model:
    return backbones.factory.build_backbone(
        input_specs=input_specs,
        backbone_config=model_config.backbone,
        norm_activation_config=model_config.norm_activation,
        l2_regularizer=l2_regularizer,
    )


def _build_decoder(
    backbone: keras.Model,
    model_config: Any,
    l2_regularizer: keras.regularizers.Regularizer | None,
) -> keras.Model:
    return decoders.factory.build_decoder(
        input_specs=backbone.output_specs,
        model_config=model_config,
        l2_regularizer=l2_regularizer,
    )
