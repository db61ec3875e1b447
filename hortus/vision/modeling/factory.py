"""Builds models from configs."""

from collections.abc import Callable
from typing import Any

import keras

from hortus import registry
from hortus.vision.configs import image_classification as classification_configs
from hortus.vision.configs import maskrcnn as maskrcnn_configs
from hortus.vision.configs import retinanet as retinanet_configs
from hortus.vision.configs import semantic_segmentation as segmentation_configs
from hortus.vision.modeling import backbones, decoders, heads
from hortus.vision.modeling.classification_model import ClassificationModel
from hortus.vision.modeling.layers.detection.detection_generator import MultilevelDetectionGenerator
from hortus.vision.modeling.layers.detection.mask_sampler import MaskSampler
from hortus.vision.modeling.layers.detection.region_detection_generator import DetectionGenerator
from hortus.vision.modeling.layers.detection.roi_aligner import MultilevelROIAligner
from hortus.vision.modeling.layers.detection.roi_generator import MultilevelROIGenerator
from hortus.vision.modeling.layers.detection.roi_sampler import ROISampler
from hortus.vision.modeling.layers.normalization.norm_act import NormAct
from hortus.vision.modeling.maskrcnn_model import MaskRCNNModel
from hortus.vision.modeling.retinanet_model import RetinaNetModel
from hortus.vision.modeling.segmentation_model import SegmentationModel

Builder = Callable[..., keras.Model]

_BUILDERS = registry.Registry("model for the config", "hortus.vision.modeling")


def register_model(config_cls: type) -> Callable[[Builder], Builder]:
    """Decorates the function that builds a model, and makes it the model of a config class.

        @dataclasses.dataclass
        class TwinModel(image_classification.ImageClassificationModel):
            twins: int = 2

        @factory.register_model(TwinModel)
        def build_twin_model(input_specs, model_config, l2_regularizer=None):
            return Twin(model_config.twins, ...)

    A task takes it when its own config has such a model: a subclass of the task's config says
    `model: TwinModel`. A config without a model of its own has that of the nearest of its bases.

    The builder receives:
        input_specs: `keras.layers.InputSpec` of the images, batch first.
        model_config: an instance of `config_cls`.
        l2_regularizer: what to regularise kernels with, or None.

    It returns a `keras.Model` with all of its variables, that is called like the model of the
    parent config, returns the same structure, and has `backbone` and `checkpoint_items` as it has.

    Args:
        config_cls: a `hyperparams.Config`.
    """
    return registry.register(_BUILDERS, config_cls)


def build_model(
    input_specs: keras.layers.InputSpec,
    model_config: Any,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
) -> keras.Model:
    """Builds the model that a config describes; see `register_model` for the arguments.

    Raises:
        RegistryError: no model is registered for the config's class or a base of it.
    """
    build = registry.lookup_for(_BUILDERS, type(model_config))
    return build(input_specs=input_specs, model_config=model_config, l2_regularizer=l2_regularizer)


@register_model(classification_configs.ImageClassificationModel)
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


@register_model(segmentation_configs.SemanticSegmentationModel)
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
    common = (model_config, NormAct.from_config(model_config.norm_activation), l2_regularizer)
    mask_scoring_head = None
    if model_config.mask_scoring_head is not None:
        mask_scoring_head = heads.factory.build_head(
            model_config.mask_scoring_head, *common, name="mask_scoring_head"
        )
    return SegmentationModel(
        backbone=backbone,
        decoder=decoder,
        head=heads.factory.build_head(model_config.head, *common, name="head"),
        mask_scoring_head=mask_scoring_head,
    )


@register_model(retinanet_configs.RetinaNet)
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
    _check_classes(model_config)
    if backbone is None:
        backbone = _build_backbone(input_specs, model_config, l2_regularizer)
    if decoder is None:
        decoder = _build_decoder(backbone, model_config, l2_regularizer)
    anchor, norm_act = model_config.anchor, NormAct.from_config(model_config.norm_activation)
    return RetinaNetModel(
        backbone=backbone,
        decoder=decoder,
        head=heads.factory.build_head(
            model_config.head, model_config, norm_act, l2_regularizer, name="head"
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


@register_model(maskrcnn_configs.MaskRCNN)
def build_maskrcnn(
    input_specs: keras.layers.InputSpec,
    model_config: maskrcnn_configs.MaskRCNN,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
    backbone: keras.Model | None = None,
    decoder: keras.Model | None = None,
) -> MaskRCNNModel:
    """Builds a two-stage detector, with masks or without, perhaps a cascade, with all variables.

    Args:
        input_specs: shape of the images, batch first.
        model_config: what to build.
        l2_regularizer: of the kernels, or None.
        backbone: instead of the one that the config names.
        decoder: instead of the one that the config names.
    """
    _check_classes(model_config)
    if backbone is None:
        backbone = _build_backbone(input_specs, model_config, l2_regularizer)
    if decoder is None:
        decoder = _build_decoder(backbone, model_config, l2_regularizer)
    anchor = model_config.anchor
    common: dict[str, Any] = {
        "norm_act": NormAct.from_config(model_config.norm_activation),
        "kernel_regularizer": l2_regularizer,
    }
    samplers = _roi_samplers(model_config.roi_sampler)
    head = model_config.detection_head.as_dict()
    ensemble = head.pop("cascade_class_ensemble")
    detection_heads = [
        heads.DetectionHead(
            model_config.num_classes, **head, **common, name=_numbered("detection_head", stage)
        )
        for stage in range(len(samplers))
    ]
    proposals = model_config.roi_generator.as_dict()
    del proposals["use_batched_nms"]  # there is one way, and it is that
    detections = model_config.detection_generator
    return MaskRCNNModel(
        backbone=backbone,
        decoder=decoder,
        rpn_head=heads.RPNHead(
            min_level=model_config.min_level,
            max_level=model_config.max_level,
            num_anchors_per_location=anchor.num_scales * len(anchor.aspect_ratios),
            **model_config.rpn_head.as_dict(),
            **common,
            name="rpn_head",
        ),
        detection_head=detection_heads,
        roi_generator=MultilevelROIGenerator(**proposals, name="roi_generator"),
        roi_sampler=samplers,
        roi_aligner=MultilevelROIAligner(**model_config.roi_aligner.as_dict(), name="roi_aligner"),
        detection_generator=DetectionGenerator(
            apply_nms=detections.apply_nms,
            pre_nms_top_k=detections.pre_nms_top_k,
            pre_nms_score_threshold=detections.pre_nms_score_threshold,
            nms_iou_threshold=detections.nms_iou_threshold,
            max_num_detections=detections.max_num_detections,
            nms_version=detections.nms_version,
            soft_nms_sigma=detections.soft_nms_sigma,
            use_sigmoid_probability=detections.use_sigmoid_probability,
            name="detections",
        ),
        **_mask_parts(model_config, common),
        cascade_class_ensemble=ensemble,
        min_level=model_config.min_level,
        max_level=model_config.max_level,
        num_scales=anchor.num_scales,
        aspect_ratios=anchor.aspect_ratios,
        anchor_size=anchor.anchor_size,
        outer_boxes_scale=model_config.outer_boxes_scale,
    )


def _roi_samplers(config: maskrcnn_configs.ROISampler) -> list[ROISampler]:
    """One for each stage: the further ones of a cascade look at all that the first one chose."""
    settings = config.as_dict()
    thresholds = settings.pop("cascade_iou_thresholds") or ()
    return [
        ROISampler(**settings, name="roi_sampler"),
        *(
            ROISampler(
                mix_gt_boxes=False,
                num_sampled_rois=config.num_sampled_rois,
                foreground_iou_threshold=threshold,
                background_iou_high_threshold=threshold,
                background_iou_low_threshold=0.0,
                skip_subsampling=True,
                name=_numbered("roi_sampler", stage),
            )
            for stage, threshold in enumerate(thresholds, start=1)
        ),
    ]


def _mask_parts(
    model_config: maskrcnn_configs.MaskRCNN, common: dict[str, Any]
) -> dict[str, keras.layers.Layer]:
    if not model_config.include_mask:
        return {}
    head, aligner = model_config.mask_head, model_config.mask_roi_aligner
    sampler = model_config.mask_sampler
    if head is None or aligner is None or sampler is None:
        raise ValueError(
            "task.model.include_mask needs task.model.mask_head, mask_sampler and mask_roi_aligner"
        )
    return {
        "mask_head": heads.MaskHead(
            model_config.num_classes, **head.as_dict(), **common, name="mask_head"
        ),
        "mask_sampler": MaskSampler(
            aligner.crop_size * head.upsample_factor, sampler.num_sampled_masks, name="mask_sampler"
        ),
        "mask_roi_aligner": MultilevelROIAligner(**aligner.as_dict(), name="mask_roi_aligner"),
    }


def _numbered(name: str, stage: int) -> str:
    return f"{name}_{stage}" if stage else name


def _check_classes(model_config: Any) -> None:
    if model_config.num_classes < 2:
        raise ValueError(
            "a detector needs the background, class 0, and at least one more class, got "
            f"num_classes {model_config.num_classes}: set task.model.num_classes to the number of "
            "classes of objects plus 1"
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
