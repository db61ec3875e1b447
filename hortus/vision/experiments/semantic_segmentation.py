"""Semantic segmentation recipes, for Pascal VOC 2012 and Cityscapes."""

import dataclasses
from typing import Any

from hortus.core import config_definitions as cfg
from hortus.core import exp_factory
from hortus.vision.configs import backbones, common, decoders
from hortus.vision.configs import semantic_segmentation as seg
from hortus.vision.experiments import recipe

_RESNET101 = "gs://cloud-tpu-checkpoints/vision-2.0/deeplab/deeplab_resnet101_imagenet/ckpt-62400"
_MOBILENETV2 = (
    "gs://tf_model_garden/cloud/vision-2.0/deeplab/deeplabv3_mobilenetv2_coco/best_ckpt-63"
)
_BEST = {
    "best_checkpoint_eval_metric": "mean_iou",
    "best_checkpoint_export_subdir": "best_ckpt",
    "best_checkpoint_metric_comp": "higher",
}


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A data set and the way that recipes read it."""

    num_classes: int
    train_examples: int
    validation_examples: int
    peak_learning_rate: float
    train: dict[str, Any]
    """Fields of the training data."""
    validation: dict[str, Any]
    """Fields of the validation data."""


# The 10582 training images are VOC's own and those of the Semantic Boundaries Dataset. Labels are
# not resized at evaluation, so that the figures compare with published ones.
PASCAL = Dataset(
    num_classes=21,
    train_examples=10582,
    validation_examples=1449,
    peak_learning_rate=0.007,
    train={"input_path": "gs://**/pascal_voc_seg/train_aug*"},
    validation={
        "input_path": "gs://**/pascal_voc_seg/val*",
        "resize_eval_groundtruth": False,
        "groundtruth_padded_size": [512, 512],
    },
)
CITYSCAPES = Dataset(
    num_classes=19,
    train_examples=2975,
    validation_examples=500,
    peak_learning_rate=0.01,
    train={"input_path": "cityscapes/train_fine**", "crop_size": [512, 1024]},
    validation={"input_path": "cityscapes/val_fine*"},
)


def _experiment(
    data: Dataset,
    model: dict[str, Any],
    batch_size: int = 16,
    validation_batch_size: int = 16,
    epochs: int | None = None,
    train_steps: int | None = None,
    output_size: list[int] | None = None,
    scales: tuple[float, float] = (0.5, 2.0),
    l2_weight_decay: float = 1e-4,
    trainer: dict[str, Any] | None = None,
    **task: Any,
) -> cfg.ExperimentConfig:
    """SGD with DeepLab's learning rate, over `epochs` or `train_steps`."""
    epoch = data.train_examples // batch_size
    steps = train_steps or epoch * (epochs or 1)
    size: dict[str, Any] = {"output_size": output_size} if output_size else {}
    return recipe.experiment(
        seg.SemanticSegmentationTask(
            model=seg.SemanticSegmentationModel(num_classes=data.num_classes, **model),
            losses=seg.Losses(l2_weight_decay=l2_weight_decay),
            train_data=seg.DataConfig(
                is_training=True,
                global_batch_size=batch_size,
                aug_scale_min=scales[0],
                aug_scale_max=scales[1],
                **data.train,
                **size,
            ),
            validation_data=seg.DataConfig(
                is_training=False,
                drop_remainder=False,
                global_batch_size=validation_batch_size,
                **data.validation,
                **size,
            ),
            **task,
        ),
        recipe.trainer(
            epoch=epoch,
            train_steps=steps,
            validation_steps=data.validation_examples // validation_batch_size,
            optimizer=recipe.sgd(),
            learning_rate=recipe.poly(data.peak_learning_rate, steps),
            warmup=recipe.warmup(5 * epoch),
            **(trainer or {}),
        ),
    )


@exp_factory.register_config_factory("semantic_segmentation")
def semantic_segmentation() -> cfg.ExperimentConfig:
    """Semantic segmentation in general: name your data, input size, classes and optimizer."""
    return recipe.experiment(seg.SemanticSegmentationTask())


def _deeplab(backbone: backbones.Backbone, aspp: dict[str, Any], **others: Any) -> dict[str, Any]:
    """A model for images of any size, whose features end at level 4 (output stride 16)."""
    return {
        "input_size": [None, None, 3],
        "backbone": backbone,
        "decoder": decoders.Decoder(type="aspp", aspp=decoders.ASPP(level=4, **aspp)),
        **others,
    }


def _deeplab_resnet101(
    data: Dataset, aspp: dict[str, Any], head: dict[str, Any], norm: dict[str, Any], **others: Any
) -> cfg.ExperimentConfig:
    """DeepLab on a dilated ResNet-101 from ImageNet weights."""
    resnet = backbones.DilatedResNet(
        model_id=101, output_stride=16, stem_type="v1", multigrid=[1, 2, 4]
    )
    model = _deeplab(
        backbones.Backbone(type="dilated_resnet", dilated_resnet=resnet),
        aspp,
        head=seg.SegmentationHead(level=4, **head),
        norm_activation=common.NormActivation(activation="swish", **norm),
    )
    return _experiment(
        data, model, init_checkpoint=_RESNET101, init_checkpoint_modules="backbone", **others
    )


def _deeplab_pascal(rates: list[int], **head: Any) -> cfg.ExperimentConfig:
    return _deeplab_resnet101(
        PASCAL,
        aspp={"dilation_rates": rates},
        head=head,
        norm={"norm_momentum": 0.9997},
        epochs=45,
        validation_batch_size=8,
        output_size=[512, 512],
    )


@exp_factory.register_config_factory("seg_deeplabv3_pascal")
def seg_deeplabv3_pascal() -> cfg.ExperimentConfig:
    """DeepLabV3, ResNet-101, on Pascal VOC: Rethinking Atrous Convolution (Chen et al. 2017)."""
    return _deeplab_pascal([12, 24, 36], num_convs=0)


@exp_factory.register_config_factory("seg_deeplabv3plus_pascal")
def seg_deeplabv3plus_pascal() -> cfg.ExperimentConfig:
    """DeepLabV3+, ResNet-101, on Pascal VOC: DeepLabV3+ (Chen et al. 2018)."""
    return _deeplab_pascal([6, 12, 18], feature_fusion="deeplabv3plus")


@exp_factory.register_config_factory("seg_deeplabv3plus_cityscapes")
def seg_deeplabv3plus_cityscapes() -> cfg.ExperimentConfig:
    """DeepLabV3+, ResNet-101, on Cityscapes: DeepLabV3+ (Chen et al. 2018)."""
    return _deeplab_resnet101(
        CITYSCAPES,
        aspp={"dilation_rates": [6, 12, 18], "pool_kernel_size": [512, 1024]},
        head={"feature_fusion": "deeplabv3plus"},
        norm={},
        epochs=500,
        output_size=[1024, 2048],
    )


@exp_factory.register_config_factory("seg_resnetfpn_pascal")
def seg_resnetfpn_pascal() -> cfg.ExperimentConfig:
    """ResNet-50-FPN on Pascal VOC: Panoptic Feature Pyramid Networks (Kirillov et al. 2019)."""
    model = {
        "input_size": [512, 512, 3],
        "min_level": 3,
        "max_level": 7,
        "decoder": decoders.Decoder(type="fpn"),
        "head": seg.SegmentationHead(level=3, num_convs=3),
        "norm_activation": common.NormActivation(activation="swish"),
    }
    return _experiment(
        PASCAL, model, batch_size=256, validation_batch_size=32, epochs=450, scales=(0.2, 1.5)
    )


def _deeplab_mobilenet(
    data: Dataset,
    pool_kernel_size: list[int],
    head: seg.SegmentationHead,
    mobilenet: backbones.MobileNet | None = None,
    modules: str | list[str] = "backbone",
    **others: Any,
) -> cfg.ExperimentConfig:
    """DeepLab on MobileNetV2 from COCO weights, with pooling as the pyramid's only branch."""
    mobilenet = mobilenet or backbones.MobileNet(output_stride=16)
    model = _deeplab(
        backbones.Backbone(type="mobilenet", mobilenet=mobilenet),
        aspp={"dilation_rates": [], "pool_kernel_size": pool_kernel_size},
        head=head,
    )
    return _experiment(
        data,
        model,
        l2_weight_decay=4e-5,
        trainer=_BEST,
        init_checkpoint=_MOBILENETV2,
        init_checkpoint_modules=modules,
        **others,
    )


@exp_factory.register_config_factory("mnv2_deeplabv3_pascal")
def mnv2_deeplabv3_pascal() -> cfg.ExperimentConfig:
    """DeepLabV3, MobileNetV2, on Pascal VOC: MobileNetV2 (Sandler et al. 2018)."""
    return _deeplab_mobilenet(
        PASCAL,
        pool_kernel_size=[],
        head=seg.SegmentationHead(level=4, num_convs=0),
        modules=["backbone", "decoder"],
        train_steps=30000,
        output_size=[512, 512],
    )


def _mobilenet_cityscapes(
    head: seg.SegmentationHead, mobilenet: backbones.MobileNet | None = None
) -> cfg.ExperimentConfig:
    return _deeplab_mobilenet(
        CITYSCAPES,
        pool_kernel_size=[512, 1024],
        head=head,
        mobilenet=mobilenet,
        train_steps=100000,
        output_size=[1024, 2048],
    )


@exp_factory.register_config_factory("mnv2_deeplabv3_cityscapes")
def mnv2_deeplabv3_cityscapes() -> cfg.ExperimentConfig:
    """DeepLabV3, MobileNetV2, on Cityscapes: MobileNetV2 (Sandler et al. 2018)."""
    return _mobilenet_cityscapes(seg.SegmentationHead(level=4, num_convs=0))


@exp_factory.register_config_factory("mnv2_deeplabv3plus_cityscapes")
def mnv2_deeplabv3plus_cityscapes() -> cfg.ExperimentConfig:
    """DeepLabV3+, MobileNetV2, on Cityscapes: DeepLabV3+ (Chen et al. 2018)."""
    return _mobilenet_cityscapes(
        seg.SegmentationHead(
            level=4,
            feature_fusion="deeplabv3plus",
            low_level="2/depthwise",
            use_depthwise_convolution=True,
        ),
        backbones.MobileNet(output_stride=16, output_intermediate_endpoints=True),
    )
