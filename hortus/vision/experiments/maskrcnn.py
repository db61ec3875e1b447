"""Faster, Mask and Cascade R-CNN recipes, for COCO (Lin et al. 2014)."""

from typing import Any

from hortus.core import config_definitions as cfg
from hortus.core import exp_factory
from hortus.vision.configs import backbones, common, decoders
from hortus.vision.configs import maskrcnn as maskrcnn_cfg
from hortus.vision.experiments import recipe
from hortus.vision.experiments.retinanet import SPINENET_LEVELS, VALIDATION_EXAMPLES


def _task(
    model: dict[str, Any],
    scales: tuple[float, float],
    batch_size: int,
    validation_batch_size: int = 8,
    **others: Any,
) -> maskrcnn_cfg.MaskRCNNTask:
    """COCO in TFRecords; `scales` is the range of the random resize of the training images."""
    return maskrcnn_cfg.MaskRCNNTask(
        model=maskrcnn_cfg.MaskRCNN(num_classes=91, **model),
        losses=maskrcnn_cfg.Losses(l2_weight_decay=4e-5),
        train_data=maskrcnn_cfg.DataConfig(
            input_path="coco/train*",
            is_training=True,
            global_batch_size=batch_size,
            parser=maskrcnn_cfg.Parser(
                aug_rand_hflip=True, aug_scale_min=scales[0], aug_scale_max=scales[1]
            ),
        ),
        validation_data=maskrcnn_cfg.DataConfig(
            input_path="coco/val*",
            is_training=False,
            drop_remainder=False,
            global_batch_size=validation_batch_size,
        ),
        annotation_file="coco/instances_val2017.json",
        **others,
    )


def _trainer(
    epoch: int,
    epochs: int,
    drops: tuple[int, int],
    peak: float = 0.32,
    warmup: int = 2000,
    validation_batch_size: int = 8,
) -> cfg.TrainerConfig:
    """SGD whose learning rate falls to a tenth after each epoch of `drops`."""
    return recipe.trainer(
        epoch=epoch,
        train_steps=epochs * epoch,
        validation_steps=VALIDATION_EXAMPLES // validation_batch_size,
        optimizer=recipe.sgd(),
        learning_rate=recipe.step_down(peak, at=[drop * epoch for drop in drops]),
        warmup=recipe.warmup(warmup, start=0.0067),
    )


def _resnetfpn(enable_xla: bool = False, **model: Any) -> cfg.ExperimentConfig:
    """ResNet-50-FPN from ImageNet weights, 45 "epochs" of 500 steps, about 24 passes."""
    return recipe.experiment(
        _task(
            {"input_size": [1024, 1024, 3], **model},
            scales=(0.8, 1.25),
            batch_size=64,
            init_checkpoint="gs://cloud-tpu-checkpoints/vision-2.0/resnet50_imagenet/ckpt-28080",
            init_checkpoint_modules="backbone",
        ),
        _trainer(500, epochs=45, drops=(30, 40), peak=0.12, warmup=500),
        enable_xla=enable_xla,
        mixed_precision_dtype="bfloat16",
    )


@exp_factory.register_config_factory("fasterrcnn_resnetfpn_coco")
def fasterrcnn_resnetfpn_coco() -> cfg.ExperimentConfig:
    """Faster R-CNN, ResNet-50-FPN, on COCO: Faster R-CNN (Ren et al. 2015)."""
    return _resnetfpn(include_mask=False, mask_head=None, mask_sampler=None, mask_roi_aligner=None)


@exp_factory.register_config_factory("maskrcnn_resnetfpn_coco")
def maskrcnn_resnetfpn_coco() -> cfg.ExperimentConfig:
    """Mask R-CNN, ResNet-50-FPN, on COCO: Mask R-CNN (He et al. 2017)."""
    return _resnetfpn(enable_xla=True)


def _from_scratch(size: int, activation: str, **others: Any) -> dict[str, Any]:
    """Settings of the models that are trained without ImageNet weights."""
    return {
        "input_size": [size, size, 3],
        "min_level": 3,
        "anchor": maskrcnn_cfg.Anchor(anchor_size=3.0),
        "norm_activation": common.NormActivation(activation=activation),
        **others,
    }


def _spinenet(
    activation: str,
    scales: tuple[float, float],
    epochs: int,
    drops: tuple[int, int],
    **model: Any,
) -> cfg.ExperimentConfig:
    """SpineNet-49 at 640 pixels, which makes all levels itself: no decoder."""
    batch_size, epoch = 256, 463
    settings = _from_scratch(
        640,
        activation,
        max_level=7,
        backbone=backbones.Backbone(type="spinenet"),
        decoder=decoders.Decoder(type="identity"),
        **model,
    )
    return recipe.experiment(
        _task(settings, scales, batch_size),
        _trainer(epoch, epochs, drops),
        restrictions=SPINENET_LEVELS,
        mixed_precision_dtype="bfloat16",
    )


@exp_factory.register_config_factory("maskrcnn_spinenet_coco")
def maskrcnn_spinenet_coco() -> cfg.ExperimentConfig:
    """Mask R-CNN, SpineNet-49, on COCO from scratch: SpineNet (Du et al. 2019)."""
    return _spinenet("relu", scales=(0.5, 2.0), epochs=350, drops=(320, 340))


@exp_factory.register_config_factory("cascadercnn_spinenet_coco")
def cascadercnn_spinenet_coco() -> cfg.ExperimentConfig:
    """Cascade Mask R-CNN, SpineNet-49, on COCO from scratch (Cai and Vasconcelos 2017)."""
    return _spinenet(
        "swish",
        scales=(0.1, 2.5),
        epochs=500,
        drops=(475, 490),
        roi_sampler=maskrcnn_cfg.ROISampler(cascade_iou_thresholds=[0.6, 0.7]),
        detection_head=maskrcnn_cfg.DetectionHead(
            class_agnostic_bbox_pred=True, cascade_class_ensemble=True
        ),
    )


@exp_factory.register_config_factory("maskrcnn_mobilenet_coco")
def maskrcnn_mobilenet_coco() -> cfg.ExperimentConfig:
    """Mask R-CNN, MobileNetV2-FPN, on COCO from scratch: MobileNetV2 (Sandler et al. 2018)."""
    batch_size, epoch = 512, 232
    light: dict[str, Any] = {"num_filters": 128, "use_separable_conv": True}
    model = _from_scratch(
        512,
        "relu6",
        backbone=backbones.Backbone(type="mobilenet"),
        decoder=decoders.Decoder(type="fpn", fpn=decoders.FPN(**light)),
        rpn_head=maskrcnn_cfg.RPNHead(**light),
        detection_head=maskrcnn_cfg.DetectionHead(fc_dims=512, **light),
        mask_head=maskrcnn_cfg.MaskHead(**light),
    )
    return recipe.experiment(
        _task(model, (0.5, 2.0), batch_size, validation_batch_size=batch_size),
        _trainer(epoch, epochs=350, drops=(320, 340), validation_batch_size=batch_size),
        mixed_precision_dtype="bfloat16",
    )
