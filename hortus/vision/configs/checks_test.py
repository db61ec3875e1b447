"""What `validate` finds in the vision configs."""

import pytest

from hortus import hyperparams
from hortus.core import exp_factory
from hortus.vision import experiments
from hortus.vision.configs import backbones, common, image_classification

assert experiments  # registers the experiments

CONTRADICTIONS = [
    ("retinanet", "task.model.min_level=8", "must not exceed max_level (7), got 8"),
    (
        "retinanet_mobile_coco",
        "task.model.min_level=4",
        "must equal backbone.spinenet_mobile.min_level (3), got 4",
    ),
    ("retinanet", "task.model.input_size=[640, 640]", "must have 3 items, got [640, 640]"),
    (
        "retinanet",
        "task.train_data.parser.unmatched_threshold=0.7",
        "must not exceed match_threshold (0.5), got 0.7",
    ),
    (
        "retinanet",
        "task.train_data.parser.aug_scale_min=2",
        "must not exceed aug_scale_max (1), got 2",
    ),
    (
        "retinanet",
        "task.model.detection_generator.nms_iou_threshold=50",
        "expected a number from 0 to 1, got 50 (int)",
    ),
    (
        "retinanet",
        "task.model.detection_generator.box_coder_weights=[10, 5]",
        "must have 4 items, got [10.0, 5.0]",
    ),
    (
        "retinanet",
        "task.model.decoder.fpn.fusion_type=add",
        "must be one of sum, concat; got 'add'",
    ),
    (
        "retinanet",
        "task.model.head.attribute_heads=[{name: a}, {name: a}]",
        "must have different names, got ['a', 'a']",
    ),
    ("maskrcnn_resnetfpn_coco", "task.model.mask_head=null", "when include_mask is true"),
    (
        "maskrcnn_resnetfpn_coco",
        "task.model.roi_sampler.background_iou_low_threshold=0.6",
        "must not exceed background_iou_high_threshold (0.5), got 0.6",
    ),
    (
        "resnet_imagenet",
        "task.model.dropout_rate=20",
        "expected a number of 0 or more and below 1, got 20",
    ),
    (
        "resnet_imagenet",
        "task.train_data.crop_area_range=[1.0, 0.1]",
        "must be written as [smallest, largest], got [1.0, 0.1]",
    ),
    ("deit_imagenet_pretrain", "task.model.backbone.vit.pooler=mean", "one of token, gap, none"),
    (
        "seg_deeplabv3plus_pascal",
        "task.validation_data.groundtruth_padded_size=[]",
        "must be set when resize_eval_groundtruth is false",
    ),
    (
        "seg_deeplabv3plus_pascal",
        "task.model.backbone.dilated_resnet.output_stride=12",
        "must be one of 4, 8, 16, 32; got 12",
    ),
    ("video_classification", "task.train_data.feature_shape=[32, 224, 224]", "must have 4 items"),
    (
        "video_classification",
        "task.model.backbone.resnet_3d.block_specs=[]",
        "must describe the 4 stages, got 0",
    ),
]


@pytest.mark.parametrize(("experiment", "change", "message"), CONTRADICTIONS)
def test_a_wrong_value_is_named_with_its_path_and_origin(experiment, change, message):
    path = change.partition("=")[0]
    with pytest.raises(hyperparams.ConfigError) as caught:
        changed(experiment, change).validate()
    assert f"{path} (override): " in str(caught.value)
    assert message in str(caught.value)


def changed(experiment: str, change: str) -> hyperparams.Config:
    config = exp_factory.get_exp_config(experiment)
    config.validate()
    config.override(change)
    return config


BETWEEN_PARTS = [
    (
        "retinanet",
        "task.model.head.attribute_heads=[{type: text}]",
        "task.model.head.attribute_heads[0].name: must not be empty",
    ),
    (
        "retinanet",
        "task.train_data.decoder.type=label_map_decoder",
        "task.train_data.decoder.label_map_decoder.label_map: must name a CSV file",
    ),
    (
        "maskrcnn_resnetfpn_coco",
        "task.losses.class_weights=[1, 2]",
        "losses.class_weights must have one item per class (91), got 2",
    ),
    (
        "resnet_imagenet",
        "task.train_data.mixup_and_cutmix={mixup_alpha: 0.2}",
        "set losses.soft_labels to true",
    ),
    (
        "resnet_imagenet",
        "task.train_data.is_multilabel=true",
        "train_data.is_multilabel and validation_data.is_multilabel must be equal",
    ),
    (
        "resnet_imagenet",
        "task.model.backbone={type: resnet_unet, resnet_unet: {upsample_filters: [64]}}",
        "got upsample_repeats 3, upsample_filters 1, upsample_kernel_sizes 3",
    ),
    (
        "seg_deeplabv3plus_pascal",
        "task.model.head.level=3",
        "head.level must equal decoder.aspp.level (4), got 3",
    ),
    (
        "seg_deeplabv3plus_pascal",
        "task.model.head.feature_fusion=panoptic_fpn_fusion",
        "task.model.head.decoder_min_level: must be set for feature_fusion panoptic_fpn_fusion",
    ),
    (
        "seg_deeplabv3plus_pascal",
        "task.losses.class_weights=[1.0]",
        "losses.class_weights must have one item per class (21), got 1",
    ),
    (
        "video_classification",
        "task.train_data.one_hot=false",
        "losses.one_hot and train_data.one_hot must be equal",
    ),
    (
        "video_classification",
        "task.train_data.output_audio=true",
        "task.train_data.audio_feature: must be set when output_audio is true",
    ),
]


@pytest.mark.parametrize(("experiment", "change", "message"), BETWEEN_PARTS)
def test_contradicting_parts_are_named(experiment, change, message):
    with pytest.raises(hyperparams.ConfigError) as caught:
        changed(experiment, change).validate()
    assert message in str(caught.value)


MIXTURES = [
    (
        {"a": 0.7, "b": 0.3},
        "pattern*",
        "must go with an input_path or tfds_name of the same names, got 'pattern*'",
    ),
    ({"a": 0.7, "b": 0.3}, {"a": "a*", "c": "c*"}, "only one side has ['b', 'c']"),
    ({"a": 0.7, "b": -1}, {"a": "a*", "b": "b*"}, "numbers of 0 or more"),
    ({"a": 0, "b": 0}, {"a": "a*", "b": "b*"}, "must not all be 0"),
]


@pytest.mark.parametrize(("weights", "input_path", "message"), MIXTURES)
def test_weights_need_matching_paths(weights, input_path, message):
    data = image_classification.DataConfig()
    data.override({"weights": weights, "input_path": input_path})
    with pytest.raises(hyperparams.ConfigError) as caught:
        data.validate()
    assert message in str(caught.value)


@pytest.mark.parametrize("source", ["input_path", "tfds_name"])
def test_a_weighted_mix_is_accepted(source):
    data = image_classification.DataConfig()
    data.override({"weights": {"a": 3, "b": 1.5}, source: {"a": "a*", "b": "b*"}})
    data.validate()


def test_only_the_chosen_backbone_is_checked():
    backbone = backbones.Backbone(
        type="resnet", spinenet=backbones.SpineNet(min_level=5, max_level=4)
    )
    backbone.validate()
    backbone.type = "spinenet"
    with pytest.raises(hyperparams.ConfigError, match="min_level"):
        backbone.validate()


def test_bounds_include_their_ends():
    for momentum in (0.0, 1.0):
        common.NormActivation(norm_momentum=momentum).validate()
    with pytest.raises(hyperparams.OutOfBoundsError, match=r"a number from 0 to 1, got 1\.5"):
        common.NormActivation(norm_momentum=1.5)
    with pytest.raises(hyperparams.OutOfBoundsError, match="norm_epsilon: expected a number above"):
        common.NormActivation(norm_epsilon=0.0)
