"""The models of the figures here: experiment, size of the images, what differs in `task.model`.

Small, but with all that makes checkpoints hard to read: layers that look alike, branches, lists.
"""


def _backbone(kind, **fields):
    return {"type": kind, kind: fields}


_RESNET = _backbone("resnet", model_id=18, depth_multiplier=0.25)

CASES = {
    "resnet_rs_ema": (
        "resnet_rs_imagenet",
        64,
        {
            "backbone": _backbone(
                "resnet",
                model_id=50,
                depth_multiplier=0.25,
                se_ratio=0.25,
                stem_type="v1",
                resnetd_shortcut=True,
                replace_stem_max_pool=True,
            )
        },
    ),
    "revnet38": ("revnet_imagenet", 64, {"backbone": _backbone("revnet", model_id=38)}),
    "mobilenet_v4_hybrid": (
        "mobilenet_imagenet",
        64,
        {
            "backbone": _backbone(
                "mobilenet", model_id="MobileNetV4HybridMedium", filter_size_scale=0.25
            )
        },
    ),
    "mobilenet_v3": (
        "mobilenet_imagenet",
        64,
        {"backbone": _backbone("mobilenet", model_id="MobileNetV3Small")},
    ),
    "mobiledet_dsp": (
        "image_classification",
        64,
        {"backbone": _backbone("mobiledet", model_id="MobileDetDSP")},
    ),
    "spinenet": (
        "image_classification",
        128,
        {"backbone": _backbone("spinenet", model_id="49S", min_level=3, max_level=5)},
    ),
    "spinenet_mobile": (
        "image_classification",
        128,
        {"backbone": _backbone("spinenet_mobile", model_id="49XS")},
    ),
    "vit": (
        "image_classification",
        64,
        {
            "backbone": _backbone(
                "vit", model_name="vit-ti16", representation_size=24, layer_scale_init_value=0.1
            )
        },
    ),
    "retinanet_fpn": (
        "retinanet_resnetfpn_coco",
        128,
        {
            "backbone": _RESNET,
            "decoder": {"type": "fpn", "fpn": {"num_filters": 16}},
            "detection_generator": {"nms_version": "v1"},
            "head": {
                "num_filters": 16,
                "num_convs": 2,
                "attribute_heads": [{"name": "colour", "type": "regression", "size": 2}],
            },
        },
    ),
    "retinanet_levels_apart": (
        "retinanet_resnetfpn_coco",
        128,
        {
            "backbone": _RESNET,
            "min_level": 2,
            "max_level": 6,
            "decoder": {"type": "fpn", "fpn": {"num_filters": 16, "use_separable_conv": True}},
            "head": {
                "num_filters": 16,
                "num_convs": 2,
                "share_level_convs": False,
                "use_separable_conv": True,
            },
        },
    ),
    "retinanet_nasfpn": (
        "retinanet_resnetfpn_coco",
        128,
        {
            "backbone": _RESNET,
            "decoder": {"type": "nasfpn", "nasfpn": {"num_filters": 16, "num_repeats": 2}},
            "head": {"num_filters": 16, "num_convs": 1},
        },
    ),
    "deeplab": (
        "seg_deeplabv3plus_cityscapes",
        64,
        {
            "backbone": _backbone("mobilenet", model_id="MobileNetV2", output_stride=16),
            "decoder": {
                "type": "aspp",
                "aspp": {
                    "level": 4,
                    "num_filters": 16,
                    "dilation_rates": [1, 2],
                    "pool_kernel_size": None,
                },
            },
            "head": {"num_filters": 16, "low_level": 2},
        },
    ),
    "mask_scoring": (
        "seg_resnetfpn_pascal",
        128,
        {
            "backbone": _RESNET,
            "decoder": {"type": "fpn", "fpn": {"num_filters": 16}},
            "head": {"num_filters": 16, "level": 3, "use_depthwise_convolution": True},
            "mask_scoring_head": {
                "num_convs": 2,
                "num_filters": 8,
                "fc_dims": 16,
                "fc_input_size": [8, 8],
            },
        },
    ),
}


def override(name):
    """What both programs set in the experiment's config."""
    _, size, model = CASES[name]
    return {
        "task": {
            "model": {"num_classes": 5, **model, "input_size": [size, size, 3]},
            "init_checkpoint": "",
            "init_checkpoint_modules": "all",
        }
    }
