"""RetinaNet recipes, for COCO (Lin et al. 2014)."""

from typing import Any

from hortus.core import config_definitions as cfg
from hortus.core import exp_factory
from hortus.vision.configs import backbones, common, decoders
from hortus.vision.configs import retinanet as retinanet_cfg
from hortus.vision.experiments import recipe

TRAIN_EXAMPLES = 118287
VALIDATION_EXAMPLES = 5000
BATCH_SIZE, VALIDATION_BATCH_SIZE = 256, 8
EPOCH = TRAIN_EXAMPLES // BATCH_SIZE

# The levels are written twice, in the model and in the backbone: they must be changed together.
SPINENET_LEVELS = (
    "task.model.min_level == task.model.backbone.spinenet.min_level",
    "task.model.max_level == task.model.backbone.spinenet.max_level",
)


def _task(
    model: dict[str, Any], scales: tuple[float, float], l2_weight_decay: float, **others: Any
) -> retinanet_cfg.RetinaNetTask:
    """COCO in TFRecords; `scales` is the range of the random resize of the training images."""
    return retinanet_cfg.RetinaNetTask(
        model=retinanet_cfg.RetinaNet(num_classes=91, **model),
        losses=retinanet_cfg.Losses(l2_weight_decay=l2_weight_decay),
        train_data=retinanet_cfg.DataConfig(
            input_path="coco/train*",
            is_training=True,
            global_batch_size=BATCH_SIZE,
            parser=retinanet_cfg.Parser(
                aug_rand_hflip=True, aug_scale_min=scales[0], aug_scale_max=scales[1]
            ),
        ),
        validation_data=retinanet_cfg.DataConfig(
            input_path="coco/val*",
            is_training=False,
            global_batch_size=VALIDATION_BATCH_SIZE,
        ),
        annotation_file="coco/instances_val2017.json",
        **others,
    )


def _trainer(epochs: int, drops: tuple[int, int], warmup: int) -> cfg.TrainerConfig:
    """SGD whose learning rate falls to a tenth after each epoch of `drops`."""
    return recipe.trainer(
        epoch=EPOCH,
        train_steps=epochs * EPOCH,
        validation_steps=VALIDATION_EXAMPLES // VALIDATION_BATCH_SIZE,
        optimizer=recipe.sgd(),
        learning_rate=recipe.step_down(0.32, at=[drop * EPOCH for drop in drops]),
        warmup=recipe.warmup(warmup, start=0.0067),
    )


@exp_factory.register_config_factory("retinanet")
def retinanet() -> cfg.ExperimentConfig:
    """RetinaNet in general: name your data, input size, classes and optimizer."""
    return recipe.experiment(retinanet_cfg.RetinaNetTask())


@exp_factory.register_config_factory("retinanet_resnetfpn_coco")
def retinanet_resnetfpn_coco() -> cfg.ExperimentConfig:
    """RetinaNet, ResNet-50-FPN, on COCO: Focal Loss for Dense Detection (Lin et al. 2017)."""
    model = {
        "input_size": [640, 640, 3],
        "norm_activation": common.NormActivation(use_sync_bn=False),
    }
    return recipe.experiment(
        _task(
            model,
            scales=(0.8, 1.2),
            l2_weight_decay=1e-4,
            init_checkpoint="gs://cloud-tpu-checkpoints/vision-2.0/resnet50_imagenet/ckpt-28080",
            init_checkpoint_modules="backbone",
        ),
        _trainer(72, drops=(57, 67), warmup=500),
        mixed_precision_dtype="bfloat16",
    )


def _spinenet_model(size: int, **others: Any) -> dict[str, Any]:
    """A backbone that makes all levels itself, so that nothing is left for a decoder."""
    return {
        "input_size": [size, size, 3],
        "anchor": retinanet_cfg.Anchor(anchor_size=3.0),
        "decoder": decoders.Decoder(type="identity"),
        "norm_activation": common.NormActivation(activation="swish"),
        **others,
    }


@exp_factory.register_config_factory("retinanet_spinenet_coco")
def retinanet_spinenet_coco() -> cfg.ExperimentConfig:
    """RetinaNet, SpineNet-49, on COCO from scratch: SpineNet (Du et al. 2019)."""
    spinenet = backbones.SpineNet(stochastic_depth_drop_rate=0.2)
    model = _spinenet_model(640, backbone=backbones.Backbone(type="spinenet", spinenet=spinenet))
    return recipe.experiment(
        _task(model, scales=(0.1, 2.0), l2_weight_decay=4e-5),
        _trainer(500, drops=(475, 490), warmup=2000),
        restrictions=SPINENET_LEVELS,
        mixed_precision_dtype="float32",
    )


@exp_factory.register_config_factory("retinanet_mobile_coco")
def retinanet_mobile_coco() -> cfg.ExperimentConfig:
    """RetinaNet, Mobile SpineNet-49, on COCO from scratch: Mobile SpineNet (Du et al. 2020)."""
    mobile = backbones.SpineNetMobile(stochastic_depth_drop_rate=0.2)
    model = _spinenet_model(
        384,
        backbone=backbones.Backbone(type="spinenet_mobile", spinenet_mobile=mobile),
        head=retinanet_cfg.RetinaNetHead(num_filters=48, use_separable_conv=True),
    )
    return recipe.experiment(
        _task(model, scales=(0.1, 2.0), l2_weight_decay=3e-5),
        _trainer(600, drops=(575, 590), warmup=2000),
        mixed_precision_dtype="float32",
    )
