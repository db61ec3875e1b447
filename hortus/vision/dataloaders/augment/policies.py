"""The policies of AutoAugment, as data.

A policy is a list of sub-policies, one of which is drawn for each image. A sub-policy is a list of
(operation, probability, level), applied one after another.
"""

SubPolicy = tuple[tuple[str, float, float], ...]
Policy = tuple[SubPolicy, ...]


def _read(text: str) -> Policy:
    """One sub-policy per line: `operation probability level, operation probability level`."""
    lines = (line.split(",") for line in text.strip().splitlines())
    return tuple(tuple(_step(*step.split()) for step in line) for line in lines)


def _step(name: str, probability: str, level: str) -> tuple[str, float, float]:
    return name, float(probability), float(level)


POLICIES: dict[str, Policy] = {
    # Object detection (Zoph et al. 2019).
    "detection_v0": _read("""
        TranslateX_BBox 0.6 4, Equalize 0.8 10
        TranslateY_Only_BBoxes 0.2 2, Cutout 0.8 8
        Sharpness 0 8, ShearX_BBox 0.4 0
        ShearY_BBox 1 2, TranslateY_Only_BBoxes 0.6 6
        Rotate_BBox 0.6 10, Color 1 6
    """),
    # ImageNet, all of it (Cubuk et al. 2018, as later published with EfficientNet).
    "v0": _read("""
        Equalize 0.8 1, ShearY 0.8 4
        Color 0.4 9, Equalize 0.6 3
        Color 0.4 1, Rotate 0.6 8
        Solarize 0.8 3, Equalize 0.4 7
        Solarize 0.4 2, Solarize 0.6 2
        Color 0.2 0, Equalize 0.8 8
        Equalize 0.4 8, SolarizeAdd 0.8 3
        ShearX 0.2 9, Rotate 0.6 8
        Color 0.6 1, Equalize 1 2
        Invert 0.4 9, Rotate 0.6 0
        Equalize 1 9, ShearY 0.6 3
        Color 0.4 7, Equalize 0.6 0
        Posterize 0.4 6, AutoContrast 0.4 7
        Solarize 0.6 8, Color 0.6 9
        Solarize 0.2 4, Rotate 0.8 9
        Rotate 1 7, TranslateY 0.8 9
        ShearX 0 0, Solarize 0.8 4
        ShearY 0.8 0, Color 0.6 4
        Color 1 0, Rotate 0.6 2
        Equalize 0.8 4, Equalize 0 8
        Equalize 1 4, AutoContrast 0.6 2
        ShearY 0.4 7, SolarizeAdd 0.6 7
        Posterize 0.8 2, Solarize 0.6 10
        Solarize 0.6 8, Equalize 0.6 1
        Color 0.8 6, Rotate 0.4 5
    """),
    # One fixed line, to try things out.
    "test": _read("""
        TranslateX 1 4, Equalize 1 10
    """),
    # v0 without its geometry.
    "simple": _read("""
        Color 0.4 9, Equalize 0.6 3
        Solarize 0.8 3, Equalize 0.4 7
        Solarize 0.4 2, Solarize 0.6 2
        Color 0.2 0, Equalize 0.8 8
        Equalize 0.4 8, SolarizeAdd 0.8 3
        Color 0.6 1, Equalize 1 2
        Color 0.4 7, Equalize 0.6 0
        Posterize 0.4 6, AutoContrast 0.4 7
        Solarize 0.6 8, Color 0.6 9
        Equalize 0.8 4, Equalize 0 8
        Equalize 1 4, AutoContrast 0.6 2
        Posterize 0.8 2, Solarize 0.6 10
        Solarize 0.6 8, Equalize 0.6 1
    """),
    # CIFAR-10.
    "reduced_cifar10": _read("""
        Invert 0.1 7, Contrast 0.2 6
        Rotate 0.7 2, TranslateX 0.3 9
        Sharpness 0.8 1, Sharpness 0.9 3
        ShearY 0.5 8, TranslateY 0.7 9
        AutoContrast 0.5 8, Equalize 0.9 2
        ShearY 0.2 7, Posterize 0.3 7
        Color 0.4 3, Brightness 0.6 7
        Sharpness 0.3 9, Brightness 0.7 9
        Equalize 0.6 5, Equalize 0.5 1
        Contrast 0.6 7, Sharpness 0.6 5
        Color 0.7 7, TranslateX 0.5 8
        Equalize 0.3 7, AutoContrast 0.4 8
        TranslateY 0.4 3, Sharpness 0.2 6
        Brightness 0.9 6, Color 0.2 8
        Solarize 0.5 2, Invert 0 3
        Equalize 0.2 0, AutoContrast 0.6 0
        Equalize 0.2 8, Equalize 0.6 4
        Color 0.9 9, Equalize 0.6 6
        AutoContrast 0.8 4, Solarize 0.2 8
        Brightness 0.1 3, Color 0.7 0
        Solarize 0.4 5, AutoContrast 0.9 3
        TranslateY 0.9 9, TranslateY 0.7 9
        AutoContrast 0.9 2, Solarize 0.8 3
        Equalize 0.8 8, Invert 0.1 3
        TranslateY 0.7 9, AutoContrast 0.9 1
    """),
    # SVHN.
    "svhn": _read("""
        ShearX 0.9 4, Invert 0.2 3
        ShearY 0.9 8, Invert 0.7 5
        Equalize 0.6 5, Solarize 0.6 6
        Invert 0.9 3, Equalize 0.6 3
        Equalize 0.6 1, Rotate 0.9 3
        ShearX 0.9 4, AutoContrast 0.8 3
        ShearY 0.9 8, Invert 0.4 5
        ShearY 0.9 5, Solarize 0.2 6
        Invert 0.9 6, AutoContrast 0.8 1
        Equalize 0.6 3, Rotate 0.9 3
        ShearX 0.9 4, Solarize 0.3 3
        ShearY 0.8 8, Invert 0.7 4
        Equalize 0.9 5, TranslateY 0.6 6
        Invert 0.9 4, Equalize 0.6 7
        Contrast 0.3 3, Rotate 0.8 4
        Invert 0.8 5, TranslateY 0 2
        ShearY 0.7 6, Solarize 0.4 8
        Invert 0.6 4, Rotate 0.8 4
        ShearY 0.3 7, TranslateX 0.9 3
        ShearX 0.1 6, Invert 0.6 5
        Solarize 0.7 2, TranslateY 0.6 7
        ShearY 0.8 4, Invert 0.8 8
        ShearX 0.7 9, TranslateY 0.8 3
        ShearY 0.8 5, AutoContrast 0.7 3
        ShearX 0.7 2, Invert 0.1 5
    """),
    # ImageNet, found on a part of it (Cubuk et al. 2018).
    "reduced_imagenet": _read("""
        Posterize 0.4 8, Rotate 0.6 9
        Solarize 0.6 5, AutoContrast 0.6 5
        Equalize 0.8 8, Equalize 0.6 3
        Posterize 0.6 7, Posterize 0.6 6
        Equalize 0.4 7, Solarize 0.2 4
        Equalize 0.4 4, Rotate 0.8 8
        Solarize 0.6 3, Equalize 0.6 7
        Posterize 0.8 5, Equalize 1 2
        Rotate 0.2 3, Solarize 0.6 8
        Equalize 0.6 8, Posterize 0.4 6
        Rotate 0.8 8, Color 0.4 0
        Rotate 0.4 9, Equalize 0.6 2
        Equalize 0 7, Equalize 0.8 8
        Invert 0.6 4, Equalize 1 8
        Color 0.6 4, Contrast 1 8
        Rotate 0.8 8, Color 1 2
        Color 0.8 8, Solarize 0.8 7
        Sharpness 0.4 7, Invert 0.6 8
        ShearX 0.6 5, Equalize 1 9
        Color 0.4 0, Equalize 0.6 3
        Equalize 0.4 7, Solarize 0.2 4
        Solarize 0.6 5, AutoContrast 0.6 5
        Invert 0.6 4, Equalize 1 8
        Color 0.6 4, Contrast 1 8
        Equalize 0.8 8, Equalize 0.6 3
    """),
    # Panoptic-DeepLab (Cheng et al. 2020): colours only.
    "panoptic_deeplab_policy": _read("""
        Sharpness 0.4 1.4, Brightness 0.2 2
        Equalize 0 1.8, Contrast 0.2 2
        Sharpness 0.2 1.8, Color 0.2 1.8
        Solarize 0.2 1.4, Equalize 0.6 1.8
        Sharpness 0.2 0.2, Equalize 0.2 1.4
    """),
    # Vision transformers: colours and cutout.
    "vit": _read("""
        Sharpness 0.4 1.4, Brightness 0.2 2, Cutout 0.8 8
        Equalize 0 1.8, Contrast 0.2 2, Cutout 0.8 8
        Sharpness 0.2 1.8, Color 0.2 1.8, Cutout 0.8 8
        Solarize 0.2 1.4, Equalize 0.6 1.8, Cutout 0.8 8
        Sharpness 0.2 0.2, Equalize 0.2 1.4, Cutout 0.8 8
        Sharpness 0.4 7, Invert 0.6 8, Cutout 0.8 8
        Invert 0.6 4, Equalize 1 8, Cutout 0.8 8
        Posterize 0.6 7, Posterize 0.6 6, Cutout 0.8 8
        Solarize 0.6 5, AutoContrast 0.6 5, Cutout 0.8 8
    """),
    # DeiT III (Touvron et al. 2022): one of three.
    "deit3_three_augment": _read("""
        Grayscale 1 0
        Solarize 1 5
        Gaussian_Noise 1 1
    """),
}
