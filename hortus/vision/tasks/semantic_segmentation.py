"""The task of semantic segmentation."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import keras
import numpy as np
from absl import logging
from keras import ops

from hortus.core import base_task, task_factory
from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.dataloaders.learnt_classes import LearntClasses
from hortus.vision.dataloaders.readers import Readers
from hortus.vision.dataloaders.segmentation import reader as segmentation_input
from hortus.vision.evaluation import iou
from hortus.vision.evaluation import segmentation as metrics_lib
from hortus.vision.losses.factory import build_loss
from hortus.vision.losses.segmentation import actual_mask_scores
from hortus.vision.modeling import factory
from hortus.vision.ops.resize import rescale_to_original, resize_nearest
from hortus.vision.tasks.task_model import build_task_model
from hortus.vision.visualization import masks as drawing
from hortus.vision.visualization.confusion_matrix import draw_confusion_matrix

_MAX_TABLE = 60
"""Most classes whose IoU is shown as a table."""
_PICTURES, _PICTURE_SIDE = 8, 256
"""How many examples are drawn at an evaluation, and their longer side at most, in pixels."""
_KEPT = 8 * _PICTURES
"""Examples held at most, to draw some from everywhere in the data: neighbours are often alike."""


@dataclasses.dataclass
class Evaluation:
    """What an evaluation has seen so far."""

    counts: np.ndarray
    """Pixels [true, predicted]."""
    pictures: list[dict[str, np.ndarray]] = dataclasses.field(default_factory=list)
    """`image`, `truth`, `prediction` and what is `shown` of every `stride`-th example."""
    seen: int = 0
    """Examples so far."""
    stride: int = 1

    def add(self, parts: dict[str, Any]) -> None:
        """Takes in the pictures of a batch."""
        for index in range(len(parts["image"])):
            if self.seen % self.stride == 0:
                self.pictures.append({key: np.asarray(all_[index]) for key, all_ in parts.items()})
            self.seen += 1
            if len(self.pictures) > _KEPT:
                self.pictures, self.stride = self.pictures[::2], 2 * self.stride

    def chosen(self) -> list[dict[str, np.ndarray]]:
        """Pictures from all over the evaluation."""
        count = min(_PICTURES, len(self.pictures))
        return [self.pictures[index * len(self.pictures) // count] for index in range(count)]


@task_factory.register_task_cls(configs.SemanticSegmentationTask)
class SemanticSegmentationTask(base_task.Task):
    """Which class does each pixel show."""

    task_config: configs.SemanticSegmentationTask

    def __init__(
        self,
        params: configs.SemanticSegmentationTask,
        logging_dir: Optional[str] = None,
        name: Optional[str] = None,
    ):
        super().__init__(params, logging_dir, name)
        self._readers = Readers()
        self._classes = LearntClasses(self.logging_dir)
        self._table = ""

    # ---- model ------------------------------------------------------------------------------

    def build_model(self) -> keras.Model:
        return build_task_model(factory.build_model, self.task_config)

    # ---- data -------------------------------------------------------------------------------

    def build_inputs(self, params: configs.DataConfig, input_context: Optional[Any] = None) -> Any:
        config = self.task_config
        reader = segmentation_input.build_reader(
            params,
            config.model.input_size[:2],
            # What lies around a matte is not in the foreground: opacity 0.
            *((0, 0) if self._is_matting else (config.model.num_classes, self._ignore_label)),
        )
        self._readers.add("train_data" if params.is_training else "validation_data", reader)
        self._classes.take(reader.info.class_names, params)
        return reader.read(input_context)

    @property
    def _is_matting(self) -> bool:
        return self.task_config.losses.gt_is_matting_map

    @property
    def _ignore_label(self) -> int:
        return self.task_config.losses.ignore_label

    def learnt_classes(self) -> tuple[str, ...]:
        return self._classes.names

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of all classes; numbers where the data that was read does not tell them."""
        names = self._classes.names
        numbers = range(len(names), self.task_config.model.num_classes)
        return (*names, *map(str, numbers))

    def input_error(self, error: Exception) -> Optional[Exception]:
        return self._readers.error_for(error)

    def notes(self) -> Iterator[str]:
        yield from self._readers.notes()
        if self._table:
            yield f"IoU by class at the last evaluation:\n{self._table}"

    # ---- tools ------------------------------------------------------------------------------

    def build_service(self, class_names: Sequence[str] = (), **facts: Any) -> Any:
        from hortus.vision.serving.services.segmentation import SegmentationService

        return SegmentationService(self.task_config, class_names, **facts)

    def build_data_tools(self) -> Any:
        from hortus.vision.data.tools.segmentation import SegmentationTools

        return SegmentationTools(self.task_config)

    # ---- loss and metrics -------------------------------------------------------------------

    def build_losses(
        self, labels: Any, model_outputs: Any, aux_losses: Optional[Any] = None
    ) -> Any:
        loss = build_loss(self.task_config)(labels, model_outputs)
        return base_task.add_losses(loss * self.task_config.losses.loss_weight, aux_losses)

    def build_metrics(self, training: bool = True) -> list[keras.metrics.Metric]:
        config = self.task_config
        own: list[keras.metrics.Metric] = []
        # The IoU of an evaluation comes from `reduce_aggregated_logs`, which counts exactly.
        if training and config.evaluation.report_train_mean_iou:
            own.append(metrics_lib.MeanIoU(config.model.num_classes))
        if not training and config.model.mask_scoring_head is not None:
            own.append(metrics_lib.MaskScoresMSE())
        return own + self.build_extra_metrics()

    def _class_labels(self, labels: dict[str, Any]) -> dict[str, Any]:
        """Labels with class numbers, which a matte has not: from the middle on it is foreground."""
        if not self._is_matting:
            return labels
        masks = ops.cast(labels["masks"] > 127, "int32")
        return {**labels, "masks": masks, "valid_masks": ops.ones_like(masks, dtype="bool")}

    def process_metrics(self, metrics: Any, labels: Any, model_outputs: Any, **kwargs: Any) -> None:
        labels = self._class_labels(labels)
        for metric in metrics:
            if isinstance(metric, metrics_lib.MaskScoresMSE):
                logits = model_outputs["logits"]
                actual = actual_mask_scores(logits, labels["masks"], self._ignore_label)
                metric.update_state(actual, model_outputs["mask_scores"], **kwargs)
            else:
                metric.update_state(labels, model_outputs["logits"], **kwargs)

    # ---- steps ------------------------------------------------------------------------------

    def validation_step(
        self, inputs: Any, model: keras.Model, metrics: Any = None
    ) -> dict[str, Any]:
        images, labels = inputs
        outputs = base_task.ops_in_float32(self.inference_step(images, model))
        rescale = not self.task_config.validation_data.resize_eval_groundtruth
        logits = metrics_lib.class_logits(outputs, labels, rescale)
        outputs = {**outputs, "logits": logits}
        loss = self.build_losses(labels, outputs, aux_losses=model.losses)
        self.process_metrics(metrics or [], labels, outputs)
        labels = self._class_labels(labels)
        is_valid = metrics_lib.valid_pixels(labels, rescale)
        logs = {
            self.loss: loss,
            "counts": metrics_lib.count_classes(labels["masks"], logits, is_valid),
        }
        if self.task_config.allow_image_summary:
            logs |= self._small_pictures(images, labels, ops.argmax(logits, axis=-1)[..., None])
        return logs

    def _small_pictures(self, images: Any, labels: Any, predictions: Any) -> dict[str, Any]:
        """What is drawn of each example, small enough to be handed around."""
        parts = {
            "image": ops.cast(images[..., :3], "float32"),
            "truth": ops.cast(labels["masks"], "int32"),
            "prediction": ops.cast(predictions, "int32"),
        }
        height, width = ops.shape(labels["masks"])[1:3]
        if isinstance(height, int) and isinstance(width, int):
            scale = min(1.0, _PICTURE_SIDE / max(height, width))
            size = (max(1, round(height * scale)), max(1, round(width * scale)))
        else:
            longer = ops.cast(ops.maximum(height, width), "float32")
            scale = ops.minimum(1.0, _PICTURE_SIDE / longer)
            sides = (ops.cast(side, "float32") * scale for side in (height, width))
            size = tuple(ops.maximum(ops.cast(ops.round(side), "int32"), 1) for side in sides)
        small = {key: resize_nearest(value, *size) for key, value in parts.items()}
        info = ops.cast(labels["image_info"], "float32")
        sides = ops.stack([ops.cast(height, "float32"), ops.cast(width, "float32")])
        # The rest of the picture is padding.
        small["shown"] = ops.minimum(ops.round(info[:, 0] * info[:, 2]) / sides, 1.0)
        if not self.task_config.validation_data.resize_eval_groundtruth:
            # The image has the model's size, and the masks have their own.
            small["shown"] = ops.minimum(info[:, 0] / sides, 1.0)
            image = rescale_to_original(parts["image"], info, height, width)
            small["image"] = resize_nearest(image, *size)
        return small

    # ---- evaluation in Python ---------------------------------------------------------------

    def aggregate_logs(self, state: Any, step_outputs: dict[str, Any]) -> Any:
        if "counts" not in step_outputs:
            return state
        if state is None:
            count = self.task_config.model.num_classes
            state = Evaluation(np.zeros((count, count), np.int64))
        counts = np.asarray(step_outputs["counts"], np.int64)
        state.counts += counts.reshape(-1, *state.counts.shape).sum(axis=0)
        if "image" in step_outputs:
            keys = ("image", "truth", "prediction", "shown")
            state.add({key: step_outputs[key] for key in keys})
        return state

    def reduce_aggregated_logs(
        self, aggregated_logs: Any, global_step: Optional[int] = None
    ) -> dict[str, Any]:
        counts = aggregated_logs.counts
        values = iou.iou_of_counts(counts)
        logs: dict[str, Any] = {"mean_iou": float(np.nanmean(values)) if counts.any() else 0.0}
        if self.task_config.evaluation.report_per_class_iou:
            # A class that is neither there nor predicted has no IoU; but a log has to be a number.
            logs |= {f"iou/{number}": float(v) for number, v in enumerate(np.nan_to_num(values))}
            self._table = self._iou_table(values, counts)
            logging.info("IoU by class:\n%s", self._table)
        if self.task_config.allow_image_summary:
            # Pixels are too many to be read as such: per cent of the true class.
            shares = np.rint(100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
            picture = draw_confusion_matrix(shares.astype(int), self.class_names)
            logs["image/confusion_matrix"] = picture[None]
            for number, parts in enumerate(aggregated_logs.chosen()):
                logs[f"image/example_{number}"] = self._draw(parts)[None]
        return logs

    def _iou_table(self, values: np.ndarray, counts: np.ndarray) -> str:
        """Lines of class, IoU and share of the pixels; none for very many classes."""
        names = self.class_names
        if len(names) > _MAX_TABLE:
            return ""
        width = max(5, *map(len, names))
        shares = counts.sum(axis=1) / max(counts.sum(), 1)
        shown = ["never met" if np.isnan(value) else f"{value:.1%}" for value in values]
        lines = [f"  {'class':<{width}}  {'IoU':>9}  pixels"]
        lines += [
            f"  {name:<{width}}  {value:>9}  {share:6.1%}"
            for name, value, share in zip(names, shown, shares, strict=True)
        ]
        return "\n".join(lines)

    def _draw(self, parts: dict[str, np.ndarray]) -> np.ndarray:
        feature = self.task_config.validation_data.image_feature
        sides = np.rint(parts["shown"] * parts["truth"].shape[:2]).astype(int)
        height, width = np.maximum(sides, 1)
        parts = {key: part[:height, :width] for key, part in parts.items() if key != "shown"}
        image = parts["image"] * np.array(feature.stddev[:3]) + np.array(feature.mean[:3])
        names = self.class_names
        return drawing.draw_side_by_side(
            np.clip(np.rint(image), 0, 255).astype(np.uint8),
            [parts["truth"][..., 0], parts["prediction"][..., 0]],
            ["truth", "prediction"],
            names,
            self._ignore_label,
            drawing.background_class(names),
        )
