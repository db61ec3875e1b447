"""One file outside of the package that adds one of everything; tests/plugin_test.py uses it.

Each part leaves a trace, by what it does or by a line in trace.txt.
"""

import dataclasses
import os
from typing import Annotated, Any

import keras
import numpy as np
import typer
from keras import ops

from hortus import hyperparams, optimization
from hortus.cli import commands
from hortus.core import actions, exp_factory, metric_factory, summary_factory, task_factory
from hortus.core import config_definitions as cfg
from hortus.core.summary_manager import SummaryManager
from hortus.reports import page
from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.configs import common, retinanet
from hortus.vision.configs import decoders as decoder_configs
from hortus.vision.configs import heads as head_configs
from hortus.vision.data.checks.findings import Finding
from hortus.vision.data.tools.detection import DetectionTools
from hortus.vision.dataloaders import augment, file_types
from hortus.vision.dataloaders.detection.detection_set import DetectionSet
from hortus.vision.losses import factory as losses
from hortus.vision.losses.retinanet import build_retinanet_loss
from hortus.vision.modeling import backbones, decoders, factory, heads
from hortus.vision.modeling.layers import ConvNormAct, NormAct
from hortus.vision.serving import formats
from hortus.vision.tasks.retinanet import RetinaNetTask

FACTOR = 3.0


def trace(line: str) -> None:
    """Notes that something was used."""
    with open("trace.txt", "a", encoding="utf-8") as file:
        file.write(f"{line}\n")


# ---- backbone, decoder, head, model ---------------------------------------------------------


@dataclasses.dataclass
class Fern(hyperparams.Config):
    """A few convolutions."""

    width: int = 8


@dataclasses.dataclass
class Backbone(backbone_configs.Backbone):
    """The backbones of hortus, and ours."""

    fern: Fern = dataclasses.field(default_factory=Fern)


class WithSpecs(keras.Model):
    """A model from or to features by level."""

    @property
    def output_specs(self) -> dict[str, tuple[int | None, ...]]:
        """Shapes of the features, batch first, by level."""
        return {level: tuple(x.shape) for level, x in self.output.items()}


@backbones.factory.register_backbone_builder("fern")
def build_fern(
    input_specs: Any, backbone_config: Any, norm_activation_config: Any, l2_regularizer: Any = None
) -> keras.Model:
    """Halves the image four times."""
    trace("backbone")
    norm_act = NormAct.from_config(norm_activation_config)
    x = images = keras.Input(input_specs.shape[1:])
    features = {}
    for level in range(1, 5):
        x = ConvNormAct(backbone_config.get().width, strides=2, norm_act=norm_act)(x)
        features[str(level)] = x
    return WithSpecs(inputs=images, outputs=features)


@dataclasses.dataclass
class Moss(hyperparams.Config):
    """A convolution of each level."""

    width: int = 8


@dataclasses.dataclass
class Decoder(decoder_configs.Decoder):
    """The decoders of hortus, and ours."""

    moss: Moss = dataclasses.field(default_factory=Moss)


@decoders.factory.register_decoder_builder("moss")
def build_moss(input_specs: Any, model_config: Any, l2_regularizer: Any = None) -> keras.Model:
    """Takes the levels of the model as they are."""
    trace("decoder")
    levels = map(str, range(model_config.min_level, model_config.max_level + 1))
    inputs = {level: keras.Input(input_specs[level][1:], name=level) for level in levels}
    width = model_config.decoder.get().width
    outputs = {level: keras.layers.Conv2D(width, 1)(x) for level, x in inputs.items()}
    return Chosen(inputs=inputs, outputs=outputs)


class Chosen(WithSpecs):
    """Leaves aside the levels that it does not need."""

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        needed = {level: inputs[level] for level in self.input}
        return super().call(needed, training=training, mask=mask)


@dataclasses.dataclass
class Bud(head_configs.RetinaNetHead):
    """A small head."""

    num_convs: hyperparams.NonNegativeInt = 1
    num_filters: hyperparams.PositiveInt = 8


@heads.factory.register_head(Bud)
def build_bud(
    head_config: Any,
    model_config: Any,
    norm_act: Any,
    l2_regularizer: Any = None,
    name: str | None = None,
) -> keras.layers.Layer:
    """The usual head, made by us."""
    trace("head")
    anchor = model_config.anchor
    return heads.RetinaNetHead(
        min_level=model_config.min_level,
        max_level=model_config.max_level,
        num_classes=model_config.num_classes,
        num_anchors_per_location=anchor.num_scales * len(anchor.aspect_ratios),
        num_convs=head_config.num_convs,
        num_filters=head_config.num_filters,
        norm_act=norm_act,
        kernel_regularizer=l2_regularizer,
        name=name,
    )


@dataclasses.dataclass
class Plant(retinanet.RetinaNet):
    """A detector of our parts."""

    backbone: Backbone = dataclasses.field(default_factory=lambda: Backbone(type="fern"))
    decoder: Decoder = dataclasses.field(default_factory=lambda: Decoder(type="moss"))
    head: Bud = dataclasses.field(default_factory=Bud)


@factory.register_model(Plant)
def build_plant(input_specs: Any, model_config: Any, l2_regularizer: Any = None) -> keras.Model:
    """The usual model, made by us."""
    trace("model")
    return factory.build_retinanet(input_specs, model_config, l2_regularizer)


# ---- loss, metric, augmentation, reader -----------------------------------------------------


@dataclasses.dataclass
class Losses(retinanet.Losses):
    """The usual losses, times a factor."""

    factor: float = FACTOR


@losses.register_loss(Losses)
def build_loss(task_config: Any) -> Any:
    """The usual losses, times a factor."""
    usual = build_retinanet_loss(task_config)

    def loss(*arguments: Any) -> Any:
        found = usual(*arguments)
        return found._replace(total=found.total * task_config.losses.factor)

    return loss


@metric_factory.register_metric("blossoms")
def build_blossoms(task_config: Any) -> keras.metrics.Metric:
    """Mean number of detections."""

    class Blossoms(keras.metrics.Mean):
        def update_state(self, labels: Any, outputs: Any) -> None:
            super().update_state(ops.cast(outputs["num_detections"], "float32"))

    return Blossoms(name="blossoms")


@dataclasses.dataclass
class Night(hyperparams.Config):
    """Turns day into night."""

    darkness: int = 255


@dataclasses.dataclass
class Augmentation(common.Augmentation):
    """The augmentations of hortus, and ours."""

    night: Night = dataclasses.field(default_factory=Night)


@augment.register_augmentation("night")
def build_night(config: Night, has_boxes: bool) -> Any:
    """Turns day into night."""

    class Dark:
        def distort_with_boxes(self, image: Any, bboxes: Any, seed: Any = None) -> Any:
            trace(f"augmentation, has_boxes={has_boxes}")
            return config.darkness - image, bboxes

    return Dark()


@file_types.register_detection_files("boxes_txt")
def read_boxes_txt(input_path: str, params: Any, include_masks: bool = False) -> DetectionSet:
    """Lines of a file's name, its size, and ymin, xmin, ymax, xmax of the one object in it."""
    with open(os.path.join(input_path, "boxes.txt"), encoding="utf-8") as file:
        rows = [line.split() for line in file]
    numbers = np.array([[int(value) for value in row[1:]] for row in rows])
    count = len(rows)
    boxes = numbers[:, 2:].astype(float)
    return DetectionSet(
        origin=input_path,
        paths=tuple(os.path.join(input_path, row[0]) for row in rows),
        image_ids=np.arange(count),
        sizes=numbers[:, :2].astype(np.int32),
        splits=np.arange(count + 1),
        boxes=boxes,
        categories=np.zeros(count, np.int64),
        areas=np.prod(boxes[:, 2:] - boxes[:, :2], axis=1).astype(np.float32),
        is_crowd=np.zeros(count, bool),
        is_difficult=np.zeros(count, bool),
        category_ids=(1,),
        category_names=("leaf",),
    )


# ---- optimizer, schedule, action, summary ---------------------------------------------------


@dataclasses.dataclass
class SlowConfig(optimization.BaseOptimizerConfig):
    """Plain gradient descent."""

    name: str = "slow"


@dataclasses.dataclass
class OptimizerConfig(optimization.OptimizerConfig):
    """The optimizers of hortus, and ours."""

    slow: SlowConfig = dataclasses.field(default_factory=SlowConfig)


@optimization.register_optimizer_cls("slow")
class Slow(keras.optimizers.SGD):
    """Plain gradient descent."""


@dataclasses.dataclass
class SeasonConfig(hyperparams.Config):
    """A rate that falls with the days."""

    peak: float = 0.001


@dataclasses.dataclass
class LrConfig(optimization.LrConfig):
    """The schedules of hortus, and ours."""

    season: SeasonConfig = dataclasses.field(default_factory=SeasonConfig)


@optimization.register_schedule_cls("season")
class Season(keras.optimizers.schedules.LearningRateSchedule):
    """A rate that falls with the days."""

    def __init__(self, peak: float):
        self.peak = peak

    def __call__(self, step: Any) -> Any:
        return self.peak / (1.0 + ops.cast(step, "float32"))

    def get_config(self) -> dict[str, Any]:
        return {"peak": self.peak}


@dataclasses.dataclass
class OptimizationConfig(optimization.OptimizationConfig):
    """Ours."""

    optimizer: OptimizerConfig = dataclasses.field(default_factory=OptimizerConfig)
    learning_rate: LrConfig = dataclasses.field(default_factory=LrConfig)


@actions.register_action("diary")
def build_diary(context: actions.Context) -> Any:
    """Writes down what was logged."""
    name = os.path.join(context.model_dir, "diary.txt")

    def write(logs: Any) -> None:
        optimizer = type(context.trainer.optimizer).__name__
        with open(name, "a", encoding="utf-8") as file:
            file.write(f"{optimizer} {' '.join(sorted(logs))}\n")

    return write


@summary_factory.register_summary("csv")
class CsvSummaries(SummaryManager):
    """A line per number, in a CSV file."""

    def __init__(self, folder: str | None, params: Any):
        super().__init__(folder)

    def write_summary(self, writer: Any, name: str, value: Any, step: int) -> None:
        folder = self.summary_dir
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "summary.csv"), "a", encoding="utf-8") as file:
                file.write(f"{name},{step},{value}\n")


# ---- report section, export format, command -------------------------------------------------


@page.register_section("Weather")
def weather(run: Any) -> str:
    """What the weather was like."""
    return page.table(("day", "weather"), [(run.name, "sunny")])


@formats.register_format("pressed")
class Pressed(formats.SavedModel):
    """A SavedModel between two sheets of paper."""

    def write(self, service: Any, model: Any, path: str) -> None:
        super().write(service, model, path)
        with open(os.path.join(path, "paper.txt"), "w", encoding="utf-8") as file:
            file.write("two sheets\n")


@commands.register_command("water")
def water(times: Annotated[int, typer.Option("--times", min=1)] = 1) -> None:
    """Water the plants."""
    print(" ".join(["drip"] * times))


# ---- task and experiment --------------------------------------------------------------------


@dataclasses.dataclass
class Parser(retinanet.Parser):
    """With our augmentation."""

    aug_type: Augmentation | None = dataclasses.field(
        default_factory=lambda: Augmentation(type="night")
    )


@dataclasses.dataclass
class DataConfig(retinanet.DataConfig):
    """With our augmentation."""

    parser: Parser = dataclasses.field(default_factory=Parser)


@dataclasses.dataclass
class GardenConfig(retinanet.RetinaNetTask):
    """Where are the leaves?"""

    model: Plant = dataclasses.field(default_factory=Plant)
    train_data: DataConfig = dataclasses.field(default_factory=lambda: DataConfig(is_training=True))
    validation_data: DataConfig = dataclasses.field(
        default_factory=lambda: DataConfig(is_training=False)
    )
    losses: Losses = dataclasses.field(default_factory=Losses)


class GardenTools(DetectionTools):
    """Has an eye on the light."""

    def check(self) -> Any:
        yield from super().check()
        yield Finding("note", "enough light")


@task_factory.register_task_cls(GardenConfig)
class GardenTask(RetinaNetTask):
    """Where are the leaves?"""

    def build_data_tools(self) -> Any:
        return GardenTools(self.task_config)


@exp_factory.register_config_factory("garden")
def garden() -> cfg.ExperimentConfig:
    """Leaves in a garden, with one of everything of our own."""
    data = {
        "file_type": "boxes_txt",
        "global_batch_size": 2,
        "dtype": "float32",
        "drop_remainder": True,
    }
    model = {
        "num_classes": 2,
        "input_size": [32, 32, 3],
        "min_level": 3,
        "max_level": 4,
        "anchor": {"num_scales": 1, "aspect_ratios": [1.0]},
        "detection_generator": {"max_num_detections": 5, "pre_nms_score_threshold": 0.0},
    }
    task = GardenConfig()
    task.override({"model": model, "train_data": {"input_path": "leaves/train", **data}})
    task.override({"validation_data": {"input_path": "leaves/val", **data}})
    task.override({"extra_metrics": ["blossoms"], "use_coco_metrics": False})
    optimizer = OptimizationConfig()
    optimizer.override({"optimizer": {"type": "slow"}, "learning_rate": {"type": "season"}})
    trainer = cfg.TrainerConfig(
        train_steps=2,
        steps_per_loop=1,
        summary_interval=1,
        checkpoint_interval=2,
        validation_interval=2,
        validation_steps=1,
        sanity_validation_steps=0,
        train_actions=["diary"],
        eval_actions=["diary"],
        summary="csv",
        optimizer_config=optimizer,
    )
    return cfg.ExperimentConfig(task=task, trainer=trainer)
