"""Configs that several vision tasks share: data decoding, augmentation, normalisation."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Annotated, Any

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.hyperparams.bounds import (
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveFraction,
    PositiveInt,
    ge,
    le,
)
from hortus.vision.configs import checks
from hortus.vision.configs.numbers import Boxes, Layers

DTYPES = ("float32", "bfloat16", "float16")
"""Types that images can have in a batch."""


@dataclasses.dataclass
class TfExampleDecoder(hyperparams.Config):
    """Decodes a detection `tf.train.Example` with integer class labels."""

    regenerate_source_id: bool = False
    """Number the images by a hash of their bytes instead of reading `image/source_id`."""
    mask_binarize_threshold: Fraction | None = None
    """Instance mask pixels above this value, 0 to 1, become 1, the others 0; null keeps them."""
    attribute_names: list[str] = dataclasses.field(default_factory=list)
    """Per-object attributes to read from the record, beside box, class and mask."""


@dataclasses.dataclass
class TfExampleDecoderLabelMap(hyperparams.Config):
    """Decodes a detection `tf.train.Example` whose classes are given as text."""

    regenerate_source_id: bool = False
    """Number the images by a hash of their bytes instead of reading `image/source_id`."""
    mask_binarize_threshold: Fraction | None = None
    """Instance mask pixels above this value, 0 to 1, become 1, the others 0; null keeps them."""
    label_map: str = ""
    """Path of a CSV file with one `class name,id` per line."""

    def check(self) -> Iterator[str]:
        if not self.label_map:
            yield "label_map must name a CSV file of class names and ids"


@dataclasses.dataclass
class DataDecoder(hyperparams.OneOfConfig):
    """How a record becomes image, boxes and classes."""

    type: str | None = "simple_decoder"
    """`simple_decoder` for integer labels, `label_map_decoder` for labels given as text."""
    simple_decoder: TfExampleDecoder = dataclasses.field(default_factory=TfExampleDecoder)
    label_map_decoder: TfExampleDecoderLabelMap = dataclasses.field(
        default_factory=TfExampleDecoderLabelMap
    )


@dataclasses.dataclass
class RandAugment(hyperparams.Config):
    """RandAugment (Cubuk et al. 2019): a few random operations, all of one strength."""

    num_layers: Layers = 2
    """Operations applied to each image, one after another."""
    magnitude: NonNegativeFloat = 10.0
    """Strength of every operation; 0 is weakest, 10 the usual maximum, more is allowed."""
    cutout_const: NonNegativeFloat = 40.0
    """Half the side of the cutout square, in pixels, at magnitude 10."""
    translate_const: NonNegativeFloat = 10.0
    """Longest shift, in pixels, at magnitude 10."""
    magnitude_std: NonNegativeFloat = 0.0
    """Standard deviation of the noise on the magnitude; 0 turns it off."""
    prob_to_apply: Fraction | None = None
    """Chance, 0 to 1, that each operation is applied; null always applies it."""
    exclude_ops: list[str] = dataclasses.field(default_factory=list)
    """Operations never drawn, such as `Cutout` or `Invert`."""


@dataclasses.dataclass
class AutoAugment(hyperparams.Config):
    """AutoAugment (Cubuk et al. 2018): a random entry of a learned policy per image."""

    augmentation_name: str = "v0"
    """Policy: v0, reduced_imagenet, reduced_cifar10, svhn, simple, test, vit, detection_v0, ..."""
    cutout_const: NonNegativeFloat = 100.0
    """Half the side of the cutout square, in pixels, at magnitude 10."""
    translate_const: NonNegativeFloat = 250.0
    """Longest shift, in pixels, at magnitude 10."""


@dataclasses.dataclass
class RandomErasing(hyperparams.Config):
    """Random erasing (Zhong et al. 2017): noise in a random rectangle."""

    probability: Fraction = 0.25
    """Chance, 0 to 1, that an image is changed."""
    min_area: Fraction = 0.02
    """Smallest rectangle, as a share of the image, 0 to 1."""
    max_area: Fraction = 1 / 3
    """Largest rectangle, as a share of the image, 0 to 1."""
    min_aspect: PositiveFraction = 0.3
    """Smallest side ratio, 0 to 1; the largest is its inverse."""

    def check(self) -> Iterator[str]:
        yield from checks.ordered(self, "min_area", "max_area")


@dataclasses.dataclass
class MixupAndCutmix(hyperparams.Config):
    """Mixup (Zhang et al. 2017) and CutMix (Yun et al. 2019): pairs of a batch, with their labels.

    The loss must take soft labels.
    """

    mixup_alpha: NonNegativeFloat = 0.8
    """Both parameters of mixup's Beta distribution; 0 turns mixup off."""
    cutmix_alpha: NonNegativeFloat = 1.0
    """Both parameters of CutMix's Beta distribution; 0 turns CutMix off."""
    prob: Fraction = 1.0
    """Chance, 0 to 1, that a batch is mixed at all."""
    switch_prob: Fraction = 0.5
    """Chance, 0 to 1, of CutMix where both are on; mixup otherwise."""
    label_smoothing: Fraction = 0.1
    """Share of the label spread over all classes, 0 to 1."""

    def check(self) -> Iterator[str]:
        if self.mixup_alpha == 0 and self.cutmix_alpha == 0:
            yield "mixup_alpha must not be 0 when cutmix_alpha is; to turn both off, set null"


@dataclasses.dataclass
class SSDRandomCropParam(hyperparams.Config):
    """One kind of crop that SSDRandomCrop may draw."""

    min_object_covered: Fraction = 0.0
    """Share of at least one box that the crop must hold, 0 to 1."""
    min_box_overlap: Fraction = 0.5
    """Boxes that keep less than this share of their area, 0 to 1, are dropped."""
    prob_to_apply: Fraction = 0.85
    """Chance, 0 to 1, that the crop is taken when drawn."""


def _ssd_crops() -> list[SSDRandomCropParam]:
    covered = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    return [SSDRandomCropParam(min_object_covered=share) for share in covered]


@dataclasses.dataclass
class SSDRandomCrop(hyperparams.Config):
    """Random crops around objects, as in SSD (Liu et al. 2016)."""

    ssd_random_crop_params: list[SSDRandomCropParam] = dataclasses.field(default_factory=_ssd_crops)
    """The kinds of crop; one is drawn for each image."""
    aspect_ratio_range: tuple[PositiveFloat, PositiveFloat] = (0.5, 2.0)
    """Smallest and largest width / height of a crop."""
    area_range: tuple[PositiveFraction, PositiveFraction] = (0.1, 1.0)
    """Smallest and largest crop, as a share of the image, 0 to 1."""

    def check(self) -> Iterator[str]:
        yield from checks.rising_range(self, "aspect_ratio_range", "area_range")


@dataclasses.dataclass
class Augmentation(hyperparams.OneOfConfig):
    """The learned or random augmentation of the training images."""

    type: str | None = None
    """`randaug`, `autoaug`, `ssd_random_crop` (detection only), or null for none."""
    randaug: RandAugment = dataclasses.field(default_factory=RandAugment)
    autoaug: AutoAugment = dataclasses.field(default_factory=AutoAugment)
    ssd_random_crop: SSDRandomCrop = dataclasses.field(default_factory=SSDRandomCrop)


@dataclasses.dataclass
class RandJpegQuality(hyperparams.Config):
    """Re-encodes the image as a JPEG of random quality."""

    min_quality: Annotated[int, ge(0), le(100)] = 20
    """Lowest JPEG quality, 0 to 100."""
    max_quality: Annotated[int, ge(0), le(100)] = 100
    """Highest JPEG quality, 0 to 100."""
    prob_to_apply: Fraction = 0.6
    """Chance, 0 to 1, that an image is changed."""

    def check(self) -> Iterator[str]:
        yield from checks.ordered(self, "min_quality", "max_quality")


@dataclasses.dataclass
class NormActivation(hyperparams.Config):
    """Batch normalisation and activation of all layers of a model."""

    activation: str = "relu"
    """Name of the activation: relu, relu6, swish, hard_swish, gelu, leaky_relu, mish, ..."""
    use_sync_bn: bool = True
    """Take batch statistics over all replicas instead of over each one's own part."""
    norm_momentum: Fraction = 0.99
    """Share of the old value in the moving statistics, 0 to 1; 0 keeps the last batch's only."""
    norm_epsilon: PositiveFloat = 0.001
    """Added to the variance before the division."""


@dataclasses.dataclass
class DataConfig(cfg.DataConfig):
    """What the inputs of all vision tasks have in common."""

    file_type: str = "tfrecord"
    """Format of the files: tfrecord, tfrecord_compressed (GZIP), or ordinary data read directly:
    folder, csv (classification), coco, voc (detection), masks (segmentation)."""
    weights: hyperparams.Config | None = None
    """Share of each named data set in a mix, beside an `input_path` or `tfds_name` that maps the
    same names to data; null for a single set."""
    allow_paths_outside: bool = False
    """Whether file names in annotation files (coco, voc, coco_panoptic) may be absolute, or lead
    out of the folder of the images by `..`. Whoever wrote the file can have any image read then."""

    def check(self) -> Iterator[str]:
        yield from super().check()
        if "dtype" in self:
            yield from checks.one_of(self, "dtype", DTYPES)
        if self.weights is not None:
            yield from self._mixture_problems(self.weights.as_dict())

    def _mixture_problems(self, weights: dict[str, Any]) -> Iterator[str]:
        mappings = [
            source.as_dict()
            for source in (self.input_path, self.tfds_name)
            if isinstance(source, hyperparams.Config)
        ]
        if not mappings:
            data = self.input_path or self.tfds_name
            yield f"weights must go with an input_path or tfds_name of the same names, got {data!r}"
        elif unmatched := sorted(set(weights) ^ set(mappings[0])):
            yield f"weights must have the same names as the data; only one side has {unmatched}"
        shares = weights.values()
        if not all(isinstance(share, (int, float)) and 0 <= share < math.inf for share in shares):
            yield f"weights must be numbers of 0 or more, got {weights}"
        elif not any(weights.values()):
            yield "weights must not all be 0"


@dataclasses.dataclass
class PseudoLabelDataConfig(cfg.DataConfig):
    """Images with labels made by a model, mixed into the training data."""

    input_path: str = ""
    """File pattern of the records."""
    data_ratio: PositiveFloat = 1.0
    """Pseudo-labelled examples per ordinary one in a batch; above 0."""
    is_training: bool = True
    """Shuffle, repeat and augment."""
    dtype: str = "float32"
    """Type of the images: float32, bfloat16 or float16."""
    shuffle_buffer_size: NonNegativeInt = 10000
    """Examples held ready for shuffling."""
    cycle_length: PositiveInt = 10
    """Files read at the same time."""
    aug_rand_hflip: bool = True
    """Mirror half of the images left to right."""
    aug_type: Augmentation | None = None
    """AutoAugment or RandAugment; null for none."""
    file_type: str = "tfrecord"
    """Format of the files: tfrecord or tfrecord_compressed (GZIP)."""
    aug_policy: str | None = hyperparams.inert(None, "superseded by aug_type")
    randaug_magnitude: NonNegativeInt | None = hyperparams.inert(
        10, "superseded by aug_type.randaug"
    )


_MOBILE = "the suppression inside of exports knows no such limit, only max_detections"


@dataclasses.dataclass
class TFLitePostProcessingConfig(hyperparams.Config):
    """The post-processing operation inside an exported mobile detector (`nms_version: tflite`)."""

    max_detections: Boxes = 200
    """Most detections per image."""
    max_classes_per_detection: PositiveInt = hyperparams.inert(5, _MOBILE)
    """Most classes reported for one box, with fast NMS."""
    use_regular_nms: bool = False
    """Suppress per class, slower; otherwise once over the best class of each box."""
    nms_score_threshold: Fraction = 0.1
    """Boxes scored below, 0 to 1, are dropped."""
    nms_iou_threshold: Fraction = 0.5
    """Boxes that overlap a better one by more than this IoU, 0 to 1, are dropped."""
    normalize_anchor_coordinates: bool | None = hyperparams.inert(
        False, "set task.export_config.output_normalized_coordinates"
    )
    """Give anchors and boxes as shares of the image size instead of pixels."""
    omit_nms: bool | None = hyperparams.inert(
        False, "set task.model.detection_generator.apply_nms=false"
    )
    """Leave suppression to the application: return decoded boxes and scores."""
    detections_per_class: PositiveInt | None = hyperparams.inert(5, _MOBILE)
    """Most detections of one class, with regular NMS."""
    y_scale: PositiveFloat = 1.0
    """Scale of the box coder's y offset."""
    x_scale: PositiveFloat = 1.0
    """Scale of the box coder's x offset."""
    w_scale: PositiveFloat = 1.0
    """Scale of the box coder's log width."""
    h_scale: PositiveFloat = 1.0
    """Scale of the box coder's log height."""
