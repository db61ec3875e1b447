"""The task of image classification."""

from collections.abc import Iterator, Sequence
from typing import Any, Optional

import keras
import numpy as np
from absl import logging
from keras import ops

from hortus.core import base_task, task_factory
from hortus.vision.configs import image_classification as configs
from hortus.vision.dataloaders.classification import reader as classification_input
from hortus.vision.dataloaders.learnt_classes import LearntClasses
from hortus.vision.dataloaders.readers import Readers
from hortus.vision.evaluation import classification as metrics_lib
from hortus.vision.losses.factory import build_loss
from hortus.vision.modeling import factory
from hortus.vision.tasks.task_model import build_task_model
from hortus.vision.visualization.confusion_matrix import draw_confusion_matrix

_MAX_TABLE = 50
"""Most classes for which accuracies are logged one by one."""


@task_factory.register_task_cls(configs.ImageClassificationTask)
class ImageClassificationTask(base_task.Task):
    """Which class does the image show, or which classes."""

    task_config: configs.ImageClassificationTask

    def __init__(
        self,
        params: configs.ImageClassificationTask,
        logging_dir: Optional[str] = None,
        name: Optional[str] = None,
    ):
        super().__init__(params, logging_dir, name)
        self._readers = Readers()
        self._classes = LearntClasses(self.logging_dir)

    # ---- model ------------------------------------------------------------------------------

    def build_model(self) -> keras.Model:
        return build_task_model(factory.build_model, self.task_config)

    # ---- data -------------------------------------------------------------------------------

    def build_inputs(self, params: configs.DataConfig, input_context: Optional[Any] = None) -> Any:
        config = self.task_config.model
        reader = classification_input.build_reader(
            params, config.input_size[:2], config.num_classes, self._names_for(params)
        )
        self._readers.add("train_data" if params.is_training else "validation_data", reader)
        if params.input_path or params.tfds_name:
            self._classes.take(reader.info.class_names, params)
        return reader.read(input_context)

    def _names_for(self, params: configs.DataConfig) -> tuple[str, ...]:
        """The classes that the model's outputs stand for, as far as they are known already."""
        return self._classes.names or classification_input.names_of_training(
            params, self.task_config.train_data
        )

    def learnt_classes(self) -> tuple[str, ...]:
        return self._classes.names

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, as far as the data that was read, or the run's folder, tells."""
        return self._classes.names

    def input_error(self, error: Exception) -> Optional[Exception]:
        return self._readers.error_for(error)

    def notes(self) -> Iterator[str]:
        yield from self._readers.notes()

    # ---- tools ------------------------------------------------------------------------------

    def build_service(self, class_names: Sequence[str] = (), **facts: Any) -> Any:
        from hortus.vision.serving.services.classification import ClassificationService

        return ClassificationService(self.task_config, class_names, **facts)

    def build_data_tools(self) -> Any:
        from hortus.vision.data.tools.classification import ClassificationTools

        return ClassificationTools(self.task_config)

    # ---- loss and metrics -------------------------------------------------------------------

    @property
    def _is_multilabel(self) -> bool:
        return self.task_config.train_data.is_multilabel

    @property
    def _has_class_numbers(self) -> bool:
        """Whether the loss and the metrics see class numbers, and not vectors."""
        config = self.task_config.losses
        return not (config.one_hot or config.soft_labels or config.use_binary_cross_entropy)

    def _label_vectors(self, labels: Any) -> Any:
        """Labels as the loss and the metrics want them."""
        config = self.task_config
        if self._is_multilabel or self._has_class_numbers or len(labels.shape) > 1:
            return labels
        return ops.one_hot(labels, config.model.num_classes)

    def build_losses(
        self, labels: Any, model_outputs: Any, aux_losses: Optional[Any] = None
    ) -> Any:
        loss = build_loss(self.task_config)(labels, model_outputs)
        return base_task.add_losses(loss * self.task_config.losses.loss_weight, aux_losses)

    def build_metrics(self, training: bool = True) -> list[keras.metrics.Metric]:
        config = self.task_config
        if self._is_multilabel:
            own = [] if training else metrics_lib.multi_label_metrics(config.model.num_classes)
            return own + self.build_extra_metrics()
        evaluation = config.evaluation
        own = metrics_lib.single_label_metrics(
            has_class_numbers=self._has_class_numbers,
            top_k=evaluation.top_k,
            thresholds=evaluation.precision_and_recall_thresholds,
            num_classes=config.model.num_classes,
            per_class=evaluation.report_per_class_precision_and_recall and not training,
        )
        return own + self.build_extra_metrics()

    # ---- steps ------------------------------------------------------------------------------

    def train_step(
        self, inputs: Any, model: keras.Model, optimizer: Any, metrics: Any = None
    ) -> dict[str, Any]:
        images, labels = inputs
        return super().train_step((images, self._label_vectors(labels)), model, optimizer, metrics)

    def validation_step(
        self, inputs: Any, model: keras.Model, metrics: Any = None
    ) -> dict[str, Any]:
        images, labels = inputs
        outputs = base_task.ops_in_float32(self.inference_step(images, model))
        vectors = self._label_vectors(labels)
        self.process_metrics(metrics or [], vectors, outputs)
        logs = {self.loss: self.build_losses(vectors, outputs, aux_losses=model.losses)}
        if not self._is_multilabel:
            classes = labels if len(labels.shape) == 1 else ops.argmax(labels, axis=-1)
            logs["classes"] = ops.cast(classes, "int32")
            logs["predictions"] = ops.cast(ops.argmax(outputs, axis=-1), "int32")
        return logs

    def process_metrics(self, metrics: Any, labels: Any, model_outputs: Any, **kwargs: Any) -> None:
        # Thresholds are about probabilities; accuracies are the same for both.
        scores = model_outputs if self._is_multilabel else ops.softmax(model_outputs)
        super().process_metrics(metrics, labels, scores, **kwargs)

    # ---- evaluation in Python ---------------------------------------------------------------

    def aggregate_logs(self, state: Any, step_outputs: dict[str, Any]) -> Any:
        if "classes" not in step_outputs:
            return None
        if state is None:
            count = self.task_config.model.num_classes
            names = list(self.class_names)
            names += [str(index) for index in range(len(names), count)]
            state = metrics_lib.ConfusionMatrix(count, names)
        state.update_state(step_outputs["classes"], step_outputs["predictions"])
        return state

    def reduce_aggregated_logs(
        self, aggregated_logs: Any, global_step: Optional[int] = None
    ) -> dict[str, Any]:
        accuracies = aggregated_logs.per_class_accuracy()
        if len(accuracies) <= _MAX_TABLE:
            width = max(map(len, accuracies), default=0)
            lines = [f"  {name:<{width}}  {value:6.1%}" for name, value in accuracies.items()]
            logging.info("Accuracy by class:\n%s", "\n".join(lines))
        if not self.task_config.allow_image_summary:
            return {}
        counts = aggregated_logs.result()
        picture = draw_confusion_matrix(counts, aggregated_logs.class_names)
        return {"image/confusion_matrix": np.asarray(picture)[None]}
