"""The task of RetinaNet: one-stage object detection."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import keras
from keras import ops

from hortus import engine
from hortus.core import base_task, task_factory
from hortus.engine import collectives
from hortus.vision.configs import retinanet as configs
from hortus.vision.losses.factory import build_loss
from hortus.vision.losses.retinanet import RetinaNetLosses, num_matched
from hortus.vision.modeling import factory
from hortus.vision.ops.anchor_labeler import AnchorLabeler, AnchorLabels
from hortus.vision.ops.anchors import AnchorGenerator
from hortus.vision.ops.detection import flatten_levels
from hortus.vision.tasks.detection_data import DetectionData
from hortus.vision.tasks.detection_evaluation import (
    DetectionEvaluation,
    MeanInstanceAP,
    as_pictures,
)
from hortus.vision.tasks.task_model import build_task_model


@task_factory.register_task_cls(configs.RetinaNetTask)
class RetinaNetTask(base_task.Task):
    """Which objects are where? In one stage."""

    task_config: configs.RetinaNetTask

    def __init__(
        self,
        params: configs.RetinaNetTask,
        logging_dir: Optional[str] = None,
        name: Optional[str] = None,
    ):
        super().__init__(params, logging_dir, name)
        if params.use_wod_metrics:
            raise ValueError(
                "task.use_wod_metrics: measuring as the Waymo Open Dataset does is not available; "
                "leave it out to measure as COCO does"
            )
        self._data = DetectionData(params.model, self.logging_dir)
        self._table = ""

    # ---- model ------------------------------------------------------------------------------

    def build_model(self) -> keras.Model:
        return build_task_model(factory.build_model, self.task_config)

    # ---- data -------------------------------------------------------------------------------

    def build_inputs(self, params: configs.DataConfig, input_context: Optional[Any] = None) -> Any:
        return self._data.build_inputs(params, input_context)

    def learnt_classes(self) -> tuple[str, ...]:
        return self._data.class_names

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes 1, 2, ..., as far as the data, or the run's folder, tells them."""
        return self._data.class_names

    def input_error(self, error: Exception) -> Optional[Exception]:
        return self._data.readers.error_for(error)

    def notes(self) -> Iterator[str]:
        yield from self._data.readers.notes()
        if self._table:
            yield f"Average precision by class at the last evaluation:\n{self._table}"

    # ---- tools ------------------------------------------------------------------------------

    def build_service(self, class_names: Sequence[str] = (), **facts: Any) -> Any:
        from hortus.vision.serving.services.detection import DetectionService

        return DetectionService(self.task_config, class_names, **facts)

    def build_data_tools(self) -> Any:
        from hortus.vision.data.tools.detection import DetectionTools

        return DetectionTools(self.task_config)

    # ---- loss and metrics -------------------------------------------------------------------

    @property
    def _attributes(self) -> dict[str, Any]:
        """Configs of the attribute heads by name."""
        return {head.name: head for head in self.task_config.model.head.attribute_heads}

    def label_anchors(self, labels: Mapping[str, Any], image_size: Any) -> AnchorLabels:
        """What each anchor has to say, from the objects of a batch.

        Args:
            labels: see `dataloaders.detection.parser.Parser`.
            image_size: height and width of the images.
        """
        model, parser = self.task_config.model, self.task_config.train_data.parser
        anchors = AnchorGenerator(
            model.min_level,
            model.max_level,
            model.anchor.num_scales,
            tuple(model.anchor.aspect_ratios),
            model.anchor.anchor_size,
        )
        labeler = AnchorLabeler(
            parser.match_threshold,
            parser.unmatched_threshold,
            model.detection_generator.box_coder_weights,
        )
        attributes = {name: labels["attributes"][name] for name in self._attributes}
        return labeler(anchors.boxes(image_size), labels["boxes"], labels["classes"], attributes)

    def detection_losses(
        self, labels: AnchorLabels, model_outputs: Mapping[str, Any], normalizer: Any = None
    ) -> RetinaNetLosses:
        """The loss of a batch in its parts, weight decay aside.

        Args:
            labels: from `label_anchors`.
            model_outputs: of the model.
            normalizer: see `RetinaNetLoss`.
        """
        num_classes = self.task_config.model.num_classes
        criterion = build_loss(self.task_config)
        attributes = {
            name: flatten_levels(model_outputs["attribute_outputs"][name], head.size)
            for name, head in self._attributes.items()
        }
        return criterion(
            labels,
            flatten_levels(model_outputs["cls_outputs"], num_classes),
            flatten_levels(model_outputs["box_outputs"], 4),
            attributes,
            normalizer,
        )

    def build_losses(
        self, labels: Any, model_outputs: Any, aux_losses: Optional[Any] = None
    ) -> Any:
        """The loss, from what `label_anchors` returned."""
        losses = self.detection_losses(labels, model_outputs)
        return self._total(losses, aux_losses)

    def _total(self, losses: RetinaNetLosses, aux_losses: Optional[Any]) -> Any:
        return base_task.add_losses(losses.total * self.task_config.losses.loss_weight, aux_losses)

    def build_metrics(self, training: bool = True) -> list[keras.metrics.Metric]:
        metrics = [keras.metrics.Mean(name=name) for name in self._loss_names]
        if training:
            return metrics
        if self.task_config.use_approx_instance_metrics:
            classes = self.task_config.model.num_classes
            metrics.append(MeanInstanceAP(classes, name="approximate_AP50"))
        return metrics + self.build_extra_metrics()

    @property
    def _loss_names(self) -> list[str]:
        """Of the metrics that `process_losses` updates."""
        names = ["total_loss", "cls_loss", "box_loss", "model_loss"]
        return names + [f"{name}_loss" for name in self._attributes]

    def process_losses(self, metrics: Any, total: Any, losses: RetinaNetLosses) -> None:
        """Updates the metrics that `build_metrics` made; leaves others alone."""
        values = {
            "total_loss": total,
            "cls_loss": losses.classes,
            "box_loss": losses.boxes,
            "model_loss": losses.total,
            **{f"{name}_loss": loss for name, loss in losses.attributes.items()},
        }
        for metric in metrics or ():
            if metric.name in values:
                metric.update_state(values[metric.name])

    # ---- steps ------------------------------------------------------------------------------

    def train_step(
        self, inputs: Any, model: keras.Model, optimizer: Any, metrics: Any = None
    ) -> dict[str, Any]:
        images, labels = inputs
        targets = self.label_anchors(labels, ops.shape(images)[1:3])
        # All replicas divide by what they found together, so that their mean is the loss of the
        # whole batch: an object counts the same wherever it is.
        found = collectives.sum_over_replicas(num_matched(targets) - 1.0) + 1.0
        normalizer = found / collectives.separate_replicas()

        def forward() -> tuple[Any, Any]:
            outputs = base_task.ops_in_float32(model(images, training=True))
            losses = self.detection_losses(targets, outputs, normalizer)
            return self._total(losses, model.losses), losses

        variables = model.trainable_variables
        (loss, losses), grads = engine.value_and_grad(forward, variables, optimizer)
        optimizer.apply_gradients(list(zip(grads, variables, strict=True)))
        self.process_losses(metrics, loss, losses)
        return {self.loss: loss}

    def validation_step(
        self, inputs: Any, model: keras.Model, metrics: Any = None
    ) -> dict[str, Any]:
        images, labels = inputs
        outputs = model(images, image_shape=labels["image_info"][:, 1, :], training=False)
        outputs = base_task.ops_in_float32(outputs)
        targets = self.label_anchors(labels, ops.shape(images)[1:3])
        # Each replica divides by what it found itself: at the end of the data some have no images.
        losses = self.detection_losses(targets, outputs)
        loss = self._total(losses, model.losses)
        self.process_losses(metrics, loss, losses)
        others = [metric for metric in metrics or () if metric.name not in self._loss_names]
        self.process_metrics(others, labels, outputs)
        logs = {self.loss: loss}
        if not self.task_config.use_coco_metrics:
            return logs
        logs["predictions"] = {
            "detection_boxes": outputs["detection_boxes"],
            "detection_scores": outputs["detection_scores"],
            "detection_classes": outputs["detection_classes"],
            "num_detections": outputs["num_detections"],
            "source_id": labels["groundtruths"]["source_id"],
            "image_info": labels["image_info"],
        }
        logs["groundtruths"] = labels["groundtruths"]
        if self.task_config.allow_image_summary:
            logs["pictures"] = as_pictures(images)
        return logs

    # ---- evaluation in Python ---------------------------------------------------------------

    def aggregate_logs(self, state: Any, step_outputs: dict[str, Any]) -> Any:
        if "predictions" not in step_outputs:
            return None
        if state is None:
            state = DetectionEvaluation(
                self.task_config, self.class_names, self.task_config.max_num_eval_detections
            )
        state.update_state(
            step_outputs["groundtruths"],
            step_outputs["predictions"],
            step_outputs.get("pictures"),
        )
        return state

    def reduce_aggregated_logs(
        self, aggregated_logs: Any, global_step: Optional[int] = None
    ) -> dict[str, Any]:
        logs = aggregated_logs.result()
        self._table = aggregated_logs.table
        return logs
