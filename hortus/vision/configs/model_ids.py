"""The sizes that each family of backbones comes in.

They stand here, beside the configs, so that `hortus validate` knows them without loading Keras; the
test compares them with the tables of the models.
"""

RESNET = (10, 18, 26, 34, 50, 101, 152, 200, 270, 350, 420)
DILATED_RESNET = (50, 101, 152, 200)
REVNET = (38, 56, 104)
EFFICIENTNET = ("b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7")
MOBILENET = (
    "MobileNetV1",
    "MobileNetV2",
    "MobileNetV3Large",
    "MobileNetV3Small",
    "MobileNetV3EdgeTPU",
    "MobileNetV3SmallReducedFilters",
    "MobileNetMultiAVG",
    "MobileNetMultiMAX",
    "MobileNetMultiAVGSeg",
    "MobileNetMultiMAXSeg",
    "MobileNetV4ConvSmall",
    "MobileNetV4ConvMedium",
    "MobileNetV4ConvMediumSeg",
    "MobileNetV4ConvLarge",
    "MobileNetV4HybridMedium",
    "MobileNetV4HybridLarge",
)
MOBILEDET = ("MobileDetCPU", "MobileDetDSP", "MobileDetEdgeTPU", "MobileDetGPU")
SPINENET = ("49S", "49", "96", "143", "143L", "190")
SPINENET_MOBILE = ("49XS", "49S", "49")
VIT = (
    "vit-ti16",
    "vit-s16",
    "vit-b16",
    "vit-b32",
    "vit-l16",
    "vit-l32",
    "vit-h14",
    "vit-g14",
    "vit-G14",
    "vit-e14",
)
STEMS = ("v0", "v1")
