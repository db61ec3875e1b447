"""The task of Faster, Mask and Cascade R-CNN: two-stage detection and instance segmentation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import keras
from keras import ops

from hortus import engine
from hortus.core import base_task, task_factory
from hortus.engine import collectives
from hortus.vision.configs import maskrcnn as configs
from hortus.vision.losses import maskrcnn as losses_lib
from hortus.vision.losses.maskrcnn import MaskRCNNLosses
from hortus.vision.modeling import factory
from hortus.vision.ops import anchors as anchor_ops
from hortus.vision.ops import sampling
from hortus.vision.ops.anchor_labeler import ProposalLabeler, ProposalLabels
from hortus.vision.tasks.detection_data import DetectionData
from hortus.vision.tasks.detection_evaluation import (
    DetectionEvaluation,
    MeanInstanceAP,
    as_pictures,
)
from hortus.vision.tasks.task_model import build_task_model

_PREDICTIONS = (
    "detection_boxes",
    "detection_scores",
    "detection_classes",
    "num_detections",
    "detection_masks",
    "detection_outer_boxes",
)
_EVALUATION_SEED = 0
"""Outside of training the same anchors are chosen each time, so that losses can be compared."""


@task_factory.register_task_cls(configs.MaskRCNNTask)
class MaskRCNNTask(base_task.Task):
    """Which objects are where, and which pixels are theirs? In two stages."""

    task_config: configs.MaskRCNNTask

    def __init__(
        self,
        params: configs.MaskRCNNTask,
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
        return build_task_model(factory.build_maskrcnn, self.task_config)

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
        from hortus.vision.serving.services.instances import InstanceService

        return InstanceService(self.task_config, class_names, **facts)

    def build_data_tools(self) -> Any:
        from hortus.vision.data.tools.detection import DetectionTools

        return DetectionTools(self.task_config)

    # ---- loss and metrics -------------------------------------------------------------------

    @property
    def _masks(self) -> bool:
        return self.task_config.model.include_mask

    def label_anchors(
        self, labels: Mapping[str, Any], image_size: Any, seed: sampling.Seed = None
    ) -> dict[str, Any]:
        """What the anchors that are chosen to learn from have to say, by level.

        Args:
            labels: see `dataloaders.detection.parser.Parser`.
            image_size: height and width of the images.
            seed: of the choice.

        Returns:
            `scores` and `boxes` of `ProposalLabels`, each {level: (batch, height, width, ...)}.
        """
        model, parser = self.task_config.model, self.task_config.train_data.parser
        generator = anchor_ops.AnchorGenerator(
            model.min_level,
            model.max_level,
            model.anchor.num_scales,
            tuple(model.anchor.aspect_ratios),
            model.anchor.anchor_size,
        )
        labeler = ProposalLabeler(
            parser.rpn_match_threshold,
            parser.rpn_unmatched_threshold,
            parser.rpn_batch_size_per_im,
            parser.rpn_fg_fraction,
        )
        anchors = generator.boxes(image_size)
        found: ProposalLabels = labeler(anchors, labels["boxes"], seed, self._crowds(labels))
        levels = generator(image_size)
        return {
            "scores": anchor_ops.split_levels(ops.expand_dims(found.scores, -1), levels),
            "boxes": anchor_ops.split_levels(found.boxes, levels),
        }

    def _crowds(self, labels: Mapping[str, Any]) -> Any:
        """Which objects mark a crowd; None where the labels have left them out."""
        if self.task_config.train_data.parser.skip_crowd_during_training:
            return None
        return labels["is_crowd"]

    def rpn_losses(
        self,
        targets: Mapping[str, Any],
        model_outputs: Mapping[str, Any],
        count: losses_lib.Count = losses_lib.at_hand,
    ) -> tuple[Any, Any]:
        """The losses of the scores and the boxes of the proposals.

        Args:
            targets: from `label_anchors`.
            model_outputs: of the model.
            count: see `losses.maskrcnn.Count`.
        """
        parser, config = self.task_config.train_data.parser, self.task_config.losses
        score_loss = losses_lib.RpnScoreLoss(parser.rpn_batch_size_per_im)
        box_loss = losses_lib.RpnBoxLoss(config.rpn_huber_loss_delta)
        return (
            score_loss(model_outputs["rpn_scores"], targets["scores"], count),
            box_loss(model_outputs["rpn_boxes"], targets["boxes"], count),
        )

    def detection_losses(
        self,
        targets: Mapping[str, Any],
        model_outputs: Mapping[str, Any],
        count: losses_lib.Count = losses_lib.at_hand,
    ) -> MaskRCNNLosses:
        """The loss of a batch in its parts, weight decay aside.

        Args:
            targets: from `label_anchors`.
            model_outputs: of the model in training, which knows what regions have to say.
            count: see `losses.maskrcnn.Count`.
        """
        config, outputs = self.task_config.losses, model_outputs
        class_loss = losses_lib.FastrcnnClassLoss(
            config.frcnn_class_use_binary_cross_entropy, config.frcnn_class_loss_top_k_percent
        )
        box_loss = losses_lib.FastrcnnBoxLoss(
            config.frcnn_huber_loss_delta,
            self.task_config.model.detection_head.class_agnostic_bbox_pred,
        )
        rpn_score, rpn_box = self.rpn_losses(targets, outputs, count)
        prefix = "class_targets"
        stages = [name.removeprefix(prefix) for name in outputs if name.startswith(prefix)]
        classes: Any = 0.0
        boxes: Any = 0.0
        for suffix in stages:
            of_class = outputs[f"class_targets{suffix}"]
            classes = classes + class_loss(
                outputs[f"class_outputs{suffix}"],
                of_class,
                config.class_weights,
                outputs[f"target_counts{suffix}"],
                count,
            ) / len(stages)
            codes = outputs[f"box_outputs{suffix}"]
            boxes = boxes + box_loss(codes, of_class, outputs[f"box_targets{suffix}"], count) / len(
                stages
            )
        masks = self._mask_loss(outputs, count) if self._masks else ops.zeros(())
        total = (
            config.rpn_score_weight * rpn_score
            + config.rpn_box_weight * rpn_box
            + config.frcnn_class_weight * classes
            + config.frcnn_box_weight * boxes
            + config.mask_weight * masks
        )
        return MaskRCNNLosses(total, rpn_score, rpn_box, classes, boxes, masks)

    def _mask_loss(self, outputs: Mapping[str, Any], count: losses_lib.Count) -> Any:
        classes, allowed = outputs["mask_class_targets"], self.task_config.allowed_mask_class_ids
        if allowed is not None:
            is_allowed = ops.any(
                ops.expand_dims(classes, -1) == ops.convert_to_tensor(allowed, "int32"), axis=-1
            )
            classes = ops.where(is_allowed, classes, 0)
        return losses_lib.MaskrcnnLoss()(
            outputs["mask_outputs"], outputs["mask_targets"], classes, count
        )

    def build_losses(
        self, labels: Any, model_outputs: Any, aux_losses: Optional[Any] = None
    ) -> Any:
        """The loss, from what `label_anchors` returned and what the model returns in training."""
        return self._total(self.detection_losses(labels, model_outputs), aux_losses)

    def _total(self, losses: MaskRCNNLosses, aux_losses: Optional[Any]) -> Any:
        return base_task.add_losses(losses.total * self.task_config.losses.loss_weight, aux_losses)

    def build_metrics(self, training: bool = True) -> list[keras.metrics.Metric]:
        names = ["total_loss", "rpn_score_loss", "rpn_box_loss"]
        if training:
            names += ["frcnn_cls_loss", "frcnn_box_loss", "mask_loss", "model_loss"]
        metrics: list[keras.metrics.Metric] = [keras.metrics.Mean(name=name) for name in names]
        if training:
            return metrics
        if self.task_config.use_approx_instance_metrics:
            classes = self.task_config.model.num_classes
            metrics.append(MeanInstanceAP(classes, name="approximate_AP50"))
        return metrics + self.build_extra_metrics()

    def process_losses(self, metrics: Any, values: Mapping[str, Any]) -> None:
        """Updates the metrics that `build_metrics` made; leaves others alone."""
        for metric in metrics or ():
            if metric.name in values:
                metric.update_state(values[metric.name])

    # ---- steps ------------------------------------------------------------------------------

    def train_step(
        self, inputs: Any, model: keras.Model, optimizer: Any, metrics: Any = None
    ) -> dict[str, Any]:
        images, labels = inputs
        targets = self.label_anchors(labels, ops.shape(images)[1:3], model.anchor_seed)
        truth = {"gt_boxes": labels["boxes"], "gt_classes": labels["classes"]}
        if self._masks:
            truth["gt_masks"] = labels["masks"]
        crowds = self._crowds(labels)
        if crowds is not None:
            truth["gt_is_crowd"] = crowds

        def forward() -> tuple[Any, Any]:
            info = labels["image_info"]
            outputs = model(images, image_shape=info[:, 1, :], training=True, **truth)
            losses = self.detection_losses(
                targets, base_task.ops_in_float32(outputs), _over_replicas
            )
            return self._total(losses, model.losses), losses

        variables = model.trainable_variables
        (loss, losses), grads = engine.value_and_grad(forward, variables, optimizer)
        optimizer.apply_gradients(list(zip(grads, variables, strict=True)))
        values = {
            "total_loss": loss,
            "rpn_score_loss": losses.rpn_score,
            "rpn_box_loss": losses.rpn_box,
            "frcnn_cls_loss": losses.frcnn_class,
            "frcnn_box_loss": losses.frcnn_box,
            "mask_loss": losses.mask,
            "model_loss": losses.total,
        }
        self.process_losses(metrics, values)
        return {self.loss: loss}

    def validation_step(
        self, inputs: Any, model: keras.Model, metrics: Any = None
    ) -> dict[str, Any]:
        """The loss is that of the proposals: there are no regions to learn from."""
        images, labels = inputs
        outputs = model(images, image_shape=labels["image_info"][:, 1, :], training=False)
        outputs = base_task.ops_in_float32(outputs)
        targets = self.label_anchors(labels, ops.shape(images)[1:3], _EVALUATION_SEED)
        # Each replica divides by what it found itself: at the end of the data some have no images.
        score, box = self.rpn_losses(targets, outputs)
        config = self.task_config.losses
        loss = (config.rpn_score_weight * score + config.rpn_box_weight * box) * config.loss_weight
        loss = base_task.add_losses(loss, model.losses)
        values = {"total_loss": loss, "rpn_score_loss": score, "rpn_box_loss": box}
        self.process_losses(metrics, values)
        others = [metric for metric in metrics or () if metric.name not in values]
        self.process_metrics(others, labels, outputs)
        logs = {self.loss: loss}
        if not self.task_config.use_coco_metrics:
            return logs
        predictions = {name: outputs[name] for name in _PREDICTIONS if name in outputs}
        logs["predictions"] = {
            **predictions,
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
            state = DetectionEvaluation(self.task_config, self.class_names)
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


def _over_replicas(count: Any) -> Any:
    """Replicas divide by the mean of what they found, so that their mean is the batch's loss."""
    total = collectives.sum_over_replicas(ops.stop_gradient(count))
    return total / collectives.separate_replicas()
