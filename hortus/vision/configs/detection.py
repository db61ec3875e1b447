"""What the one-stage and the two-stage detectors have in common."""

import dataclasses
from collections.abc import Iterator

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.hyperparams.bounds import (
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from hortus.vision.configs import backbones, checks, common, readiness
from hortus.vision.configs.numbers import Boxes, Classes, Level, Pixels


@dataclasses.dataclass
class Parser(hyperparams.Config):
    """From a decoded image with its objects to a training example."""

    num_channels: PositiveInt = 3
    """Channels of the images: 1 for grey, 3 for colour."""
    aug_rand_hflip: bool = False
    """Mirror half of the training images left to right."""
    aug_rand_vflip: bool = False
    """Mirror half of the training images top to bottom."""
    aug_scale_min: PositiveFloat = 1.0
    """Smallest random scale of a training image, relative to the model's input size."""
    aug_scale_max: PositiveFloat = 1.0
    """Largest random scale of a training image, relative to the model's input size."""
    aug_type: common.Augmentation | None = None
    """AutoAugment, RandAugment or SSD crops; null for none."""
    skip_crowd_during_training: bool = True
    """Leave out boxes that mark a crowd of objects."""
    skip_difficult_during_training: bool = True
    """Leave out objects that the data calls difficult (Pascal VOC). Evaluation ignores them: they
    need not be found, and finding them is no fault."""
    max_num_instances: Boxes = 100
    """Most objects per image; further ones are dropped."""
    pad: bool = True
    """Fill the image up to a multiple of the coarsest level's stride."""
    keep_aspect_ratio: bool = True
    """Scale height and width alike and pad the rest; otherwise stretch to the input size."""

    def check(self) -> Iterator[str]:
        yield from checks.ordered(self, "aug_scale_min", "aug_scale_max")


@dataclasses.dataclass
class DataConfig(common.DataConfig):
    """Images with boxes and classes."""

    image_dir: str = ""
    """With `file_type: coco`, where input_path names the JSON file: the folder that its file names
    start from. Empty looks in `images` beside the file, beside the file itself, and where COCO has
    them (`../train2017` for `annotations/instances_train2017.json`). With `file_type: voc`,
    input_path is the folder of Annotations and JPEGImages, or a list of its images, such as
    `VOC2012/ImageSets/Main/train.txt`; image_dir replaces JPEGImages. With `file_type:
    instance_masks`, input_path is the folder of PNG files whose pixels are the numbers of objects;
    empty takes the images of the same names in `images` instead of `masks` (or `instances`)."""
    is_training: bool = False
    """Shuffle, repeat and augment."""
    dtype: str = "bfloat16"
    """Type of the images: float32, bfloat16 or float16."""
    shuffle_buffer_size: NonNegativeInt = 10000
    """Examples held ready for shuffling."""
    decoder: common.DataDecoder = dataclasses.field(default_factory=common.DataDecoder)
    """How a record becomes image, boxes and classes."""
    parser: Parser = dataclasses.field(default_factory=Parser)
    """Resizing and augmentation."""


@dataclasses.dataclass
class Anchor(hyperparams.Config):
    """The boxes that predictions start from, at every pixel of every level."""

    num_scales: PositiveInt = 3
    """Sizes per level, spread evenly over one octave."""
    aspect_ratios: list[PositiveFloat] = dataclasses.field(default_factory=lambda: [0.5, 1.0, 2.0])
    """Width / height of the boxes at each size."""
    anchor_size: PositiveFloat = 4.0
    """Side of the smallest square box, in strides of its level."""

    def check(self) -> Iterator[str]:
        if not self.aspect_ratios:
            yield "aspect_ratios must not be empty"


@dataclasses.dataclass
class DetectionGenerator(hyperparams.Config):
    """From scored boxes to detections: non-maximum suppression (NMS)."""

    apply_nms: bool = True
    """Suppress overlapping boxes; otherwise return all of them."""
    pre_nms_top_k: Boxes = 5000
    """Best boxes per level that enter NMS."""
    pre_nms_score_threshold: Fraction = 0.05
    """Boxes scored below, 0 to 1, do not enter NMS."""
    nms_iou_threshold: Fraction = 0.5
    """Boxes that overlap a better one by more than this IoU, 0 to 1, are dropped."""
    max_num_detections: Boxes = 100
    """Most detections per image."""
    nms_version: str = "v2"
    """Variant of NMS: v1 (per class), v2 (tiled, for accelerators), v3, batched or tflite."""
    use_cpu_nms: bool = hyperparams.inert(
        False, "TensorFlow's own suppression runs on the CPU anyway, any other beside the model"
    )
    """Run NMS on the CPU even when the model runs on an accelerator."""
    soft_nms_sigma: NonNegativeFloat | None = None
    """Lower the score of overlapping boxes by a Gaussian of this width instead of dropping them
    (Bodla et al. 2017), with v1; null drops them."""


@dataclasses.dataclass
class DetectionModel(hyperparams.Config):
    """What a detector says about its input and its feature levels."""

    num_classes: Classes = 0
    """Classes, the background class 0 included."""
    input_size: list[Pixels] = dataclasses.field(default_factory=list)
    """Height, width and channels of the images, in pixels."""
    min_level: Level = 3
    """Finest feature level that is searched: 1 pixel per 2^min_level of the input."""
    max_level: Level = 7
    """Coarsest feature level that is searched."""
    anchor: Anchor = dataclasses.field(default_factory=Anchor)
    """The boxes that predictions start from."""
    backbone: backbones.Backbone = dataclasses.field(
        default_factory=lambda: backbones.Backbone(type="resnet")
    )
    """The feature extractor."""

    @property
    def learns_masks(self) -> bool:
        """Whether the data has to tell the pixels of each object, beside its box."""
        return False

    def check(self) -> Iterator[str]:
        yield from checks.length(self, 3, "input_size")
        yield from checks.ordered(self, "min_level", "max_level")
        yield from backbones.level_problems(self)


@dataclasses.dataclass
class DetectionTask(cfg.TaskConfig):
    """What every detection task offers."""

    model: DetectionModel = dataclasses.field(default_factory=DetectionModel)
    """The model."""
    train_data: DataConfig = dataclasses.field(default_factory=lambda: DataConfig(is_training=True))
    """What it learns from."""
    validation_data: DataConfig = dataclasses.field(
        default_factory=lambda: DataConfig(is_training=False)
    )
    """What it is measured on."""
    init_checkpoint: str | None = None  # type: ignore[assignment]
    """Checkpoint, or folder of checkpoints, that the first weights come from; null for none."""
    init_checkpoint_modules: str | list[str] = "all"
    """What to take from init_checkpoint: `all`, or one or several of backbone and decoder."""
    annotation_file: str | None = None
    """COCO JSON with the truth of the validation images; null takes it from validation_data."""
    per_category_metrics: bool = False
    """Report average precision of each class too."""
    use_coco_metrics: bool = True
    """Measure average precision as COCO does."""
    use_wod_metrics: bool = False
    """Measure as the Waymo Open Dataset does; needs its package."""
    freeze_backbone: bool = False
    """Keep the backbone's weights as they are."""

    def check(self) -> Iterator[str]:
        yield from super().check()
        yield from readiness.channel_problems(
            self, self.get("train_data.parser.num_channels"), "train_data.parser.num_channels"
        )

    def check_for_run(self, experiment: cfg.ExperimentConfig, mode: str) -> Iterator[str]:
        yield from super().check_for_run(experiment, mode)
        yield from readiness.problems(experiment, mode)
        yield from self._size_problems()
        if mode != "train" and self.get("model.detection_generator.apply_nms") is False:
            yield (
                "task.model.detection_generator.apply_nms must be true for a run that evaluates; "
                "an export can be made without it"
            )

    def _size_problems(self) -> Iterator[str]:
        """Images are padded to whole pixels of the coarsest level: the model has to expect that."""
        stride = 2 ** (self.get("model.max_level") or 0)
        size = self.get("model.input_size") or []
        if any(side is not None and side % stride for side in size[:2]):
            yield (
                f"task.model.input_size must have sides that are multiples of {stride}, as the "
                f"coarsest level, max_level, has 1 pixel per {stride}; got {size}"
            )
