"""Image classification recipes, for ImageNet-1k (Deng et al. 2009)."""

from typing import Any

from hortus.core import config_definitions as cfg
from hortus.core import exp_factory
from hortus.vision.configs import backbones, common
from hortus.vision.configs import image_classification as ic
from hortus.vision.experiments import recipe

TRAIN_EXAMPLES = 1281167
VALIDATION_EXAMPLES = 50000
BATCH_SIZE = 4096
EPOCH = TRAIN_EXAMPLES // BATCH_SIZE


def _task(
    model: ic.ImageClassificationModel,
    losses: ic.Losses | None = None,
    batch_size: int = BATCH_SIZE,
    **augmentation: Any,
) -> ic.ImageClassificationTask:
    """ImageNet in TFRecords; `augmentation` are fields of the training data."""
    return ic.ImageClassificationTask(
        model=model,
        losses=losses or ic.Losses(),
        train_data=ic.DataConfig(
            input_path="imagenet-2012-tfrecord/train*",
            is_training=True,
            global_batch_size=batch_size,
            **augmentation,
        ),
        validation_data=ic.DataConfig(
            input_path="imagenet-2012-tfrecord/valid*",
            is_training=False,
            global_batch_size=batch_size,
        ),
    )


def _model(
    backbone: str, config: Any = None, size: int = 224, **others: Any
) -> ic.ImageClassificationModel:
    """A model for 1000 classes and the background; `config` holds the backbone's settings."""
    settings = {} if config is None else {backbone: config}
    return ic.ImageClassificationModel(
        num_classes=1001,
        input_size=[size, size, 3],
        backbone=backbones.Backbone(type=backbone, **settings),
        **others,
    )


def _norm(**settings: Any) -> common.NormActivation:
    return common.NormActivation(use_sync_bn=False, **settings)


def _trainer(epochs: int, **schedule: Any) -> cfg.TrainerConfig:
    return recipe.trainer(
        epoch=EPOCH,
        train_steps=epochs * EPOCH,
        validation_steps=VALIDATION_EXAMPLES // BATCH_SIZE,
        **{"warmup": recipe.warmup(5 * EPOCH), **schedule},
    )


def _classic_trainer(peak: float) -> cfg.TrainerConfig:
    """90 epochs, a tenth of the learning rate after 30, 60 and 80."""
    drops = [30 * EPOCH, 60 * EPOCH, 80 * EPOCH]
    return _trainer(90, optimizer=recipe.sgd(), learning_rate=recipe.step_down(peak, at=drops))


@exp_factory.register_config_factory("image_classification")
def image_classification() -> cfg.ExperimentConfig:
    """Image classification in general: name your data, input size, classes and optimizer."""
    return recipe.experiment(ic.ImageClassificationTask())


@exp_factory.register_config_factory("resnet_imagenet")
def resnet_imagenet() -> cfg.ExperimentConfig:
    """ResNet-50 on ImageNet: Deep Residual Learning for Image Recognition (He et al. 2015)."""
    norm = _norm(norm_momentum=0.9, norm_epsilon=1e-5)
    return recipe.experiment(
        _task(_model("resnet", norm_activation=norm), ic.Losses(l2_weight_decay=1e-4)),
        _classic_trainer(peak=1.6),
        enable_xla=True,
    )


@exp_factory.register_config_factory("revnet_imagenet")
def revnet_imagenet() -> cfg.ExperimentConfig:
    """RevNet-56 on ImageNet: The Reversible Residual Network (Gomez et al. 2017)."""
    norm = _norm(norm_momentum=0.9, norm_epsilon=1e-5)
    model = _model("revnet", norm_activation=norm, add_head_batch_norm=True)
    return recipe.experiment(
        _task(model, ic.Losses(l2_weight_decay=1e-4)), _classic_trainer(peak=0.8)
    )


@exp_factory.register_config_factory("resnet_rs_imagenet")
def resnet_rs_imagenet() -> cfg.ExperimentConfig:
    """ResNet-RS-50 on ImageNet: Revisiting ResNets (Bello et al. 2021)."""
    epochs = 350
    resnet_rs = backbones.ResNet(
        stem_type="v1", resnetd_shortcut=True, replace_stem_max_pool=True, se_ratio=0.25
    )
    model = _model(
        "resnet",
        resnet_rs,
        size=160,
        dropout_rate=0.25,
        # Momentum 0 keeps the last batch's statistics: the weight average below smooths them.
        norm_activation=_norm(norm_momentum=0.0, norm_epsilon=1e-5, activation="swish"),
    )
    return recipe.experiment(
        _task(
            model,
            ic.Losses(l2_weight_decay=4e-5, label_smoothing=0.1),
            aug_type=common.Augmentation(type="randaug"),
        ),
        _trainer(
            epochs,
            optimizer=recipe.sgd(),
            learning_rate=recipe.cosine(1.6, epochs * EPOCH),
            ema={"average_decay": 0.9999, "trainable_weights_only": False},
        ),
    )


@exp_factory.register_config_factory("mobilenet_imagenet")
def mobilenet_imagenet() -> cfg.ExperimentConfig:
    """MobileNetV2 on ImageNet: Inverted Residuals and Linear Bottlenecks (Sandler et al. 2018)."""
    model = _model("mobilenet", dropout_rate=0.2, norm_activation=_norm(norm_momentum=0.997))
    return recipe.experiment(
        _task(model, ic.Losses(l2_weight_decay=1e-5, label_smoothing=0.1)),
        _trainer(
            500,
            optimizer=recipe.choose("rmsprop", rho=0.9, momentum=0.9, epsilon=0.002),
            learning_rate=recipe.choose(
                "exponential",
                initial_learning_rate=0.008 * BATCH_SIZE / 128,
                decay_steps=5 * EPOCH // 2,
                decay_rate=0.98,
                staircase=True,
            ),
        ),
    )


def _vit_pretrain(
    vit: backbones.VisionTransformer, peak: float, decay: float, warmup: int, **task: Any
) -> cfg.ExperimentConfig:
    """ViT-B/16 at 224 pixels for 300 epochs, with AdamW."""
    epochs = 300
    adamw = recipe.choose(
        "adamw",
        weight_decay_rate=decay,
        include_in_weight_decay=r".*(kernel|weight):0$",
        gradient_clip_norm=0.0,
    )
    return recipe.experiment(
        _task(_model("vit", vit, kernel_initializer="zeros"), **task),
        _trainer(
            epochs,
            optimizer=adamw,
            learning_rate=recipe.cosine(peak, epochs * EPOCH),
            warmup=recipe.warmup(warmup),
        ),
    )


@exp_factory.register_config_factory("vit_imagenet_pretrain")
def vit_imagenet_pretrain() -> cfg.ExperimentConfig:
    """ViT-B/16 on ImageNet: An Image is Worth 16x16 Words (Dosovitskiy et al. 2020)."""
    vit = backbones.VisionTransformer(representation_size=768)
    return _vit_pretrain(vit, peak=0.003, decay=0.3, warmup=10000)


@exp_factory.register_config_factory("deit_imagenet_pretrain")
def deit_imagenet_pretrain() -> cfg.ExperimentConfig:
    """ViT-B/16 on ImageNet with DeiT's augmentation and schedule (Touvron et al. 2020)."""
    vit = backbones.VisionTransformer(
        representation_size=768, init_stochastic_depth_rate=0.1, original_init=False
    )
    return _vit_pretrain(
        vit,
        peak=0.0005 * BATCH_SIZE / 512,
        decay=0.05,
        warmup=5 * EPOCH,
        losses=ic.Losses(one_hot=False, label_smoothing=0.1, soft_labels=True),
        aug_type=common.Augmentation(
            type="randaug", randaug=common.RandAugment(magnitude=9.0, exclude_ops=["Cutout"])
        ),
        mixup_and_cutmix=common.MixupAndCutmix(),
    )


@exp_factory.register_config_factory("vit_imagenet_finetune")
def vit_imagenet_finetune() -> cfg.ExperimentConfig:
    """ViT-B/16 fine-tuned at 384 pixels: An Image is Worth 16x16 Words (Dosovitskiy et al. 2020).

    Set task.init_checkpoint to a pre-trained model and init_checkpoint_modules to `backbone`.
    """
    batch_size, steps = 512, 20000
    return recipe.experiment(
        _task(_model("vit", size=384), batch_size=batch_size),
        recipe.trainer(
            epoch=TRAIN_EXAMPLES // batch_size,
            train_steps=steps,
            validation_steps=VALIDATION_EXAMPLES // batch_size,
            optimizer=recipe.sgd(global_clipnorm=1.0),
            learning_rate=recipe.cosine(0.003, steps),
        ),
    )
