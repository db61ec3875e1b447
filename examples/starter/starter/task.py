"""The task: model, data, loss, metrics, and what a step does."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from hortus import engine
from hortus.core import base_task, task_factory
from starter import backbone, config, reader  # noqa: F401  backbone registers itself
from starter.model import build_starter_model


@task_factory.register_task_cls(config.StarterTask)
class StarterTask(base_task.Task):
    """Which class does the image show?"""

    _classes: Sequence[str] = ()

    def build_model(self) -> keras.Model:
        decay = self.task_config.losses.l2_weight_decay
        regularizer = keras.regularizers.L2(decay / 2) if decay else None
        return build_starter_model(self.task_config.model, regularizer)

    def build_inputs(self, params: config.DataConfig, input_context: Any = None) -> Any:
        size = self.task_config.model.input_size[:2]
        source = reader.build_reader(params, size)
        self._classes = tuple(source.info.class_names)
        return source.read(input_context)

    def learnt_classes(self) -> Sequence[str]:
        return self._classes

    def build_losses(self, labels: Any, model_outputs: Any, aux_losses: Any = None) -> Any:
        smoothing = self.task_config.losses.label_smoothing
        vectors = ops.one_hot(labels, self.task_config.model.num_classes)
        per_example = keras.losses.categorical_crossentropy(
            vectors, model_outputs, from_logits=True, label_smoothing=smoothing
        )
        return base_task.add_losses(ops.mean(per_example), aux_losses)

    def build_metrics(self, training: bool = True) -> list[keras.metrics.Metric]:
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def build_service(self, class_names: Sequence[str] = (), **facts: Any) -> Any:
        from starter.service import StarterService

        return StarterService(self.task_config, class_names, **facts)

    # The two steps do what those of base_task.Task do; they are here to be changed.

    def train_step(
        self, inputs: Any, model: keras.Model, optimizer: Any, metrics: Any = None
    ) -> dict[str, Any]:
        images, labels = inputs

        def forward() -> tuple[Any, Any]:
            logits = model(images, training=True)
            return self.build_losses(labels, logits, aux_losses=model.losses), logits

        variables = model.trainable_variables
        (loss, logits), grads = engine.value_and_grad(forward, variables, optimizer)
        optimizer.apply_gradients(list(zip(grads, variables, strict=True)))
        self.process_metrics(metrics or [], labels, logits)
        return {self.loss: loss}

    def validation_step(
        self, inputs: Any, model: keras.Model, metrics: Any = None
    ) -> dict[str, Any]:
        images, labels = inputs
        logits = self.inference_step(images, model)
        self.process_metrics(metrics or [], labels, logits)
        loss = self.build_losses(labels, logits, aux_losses=model.losses)
        is_right = ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels)
        return {self.loss: loss, "labels": labels, "is_right": is_right}

    # What is measured in Python: the accuracy of the class that does worst.

    def aggregate_logs(self, state: Any, step_outputs: dict[str, Any]) -> Any:
        batch = (step_outputs["labels"], step_outputs["is_right"])
        return [*(state or []), batch]

    def reduce_aggregated_logs(
        self, aggregated_logs: Any, global_step: int | None = None
    ) -> dict[str, float]:
        labels, is_right = (np.concatenate(parts) for parts in zip(*aggregated_logs, strict=True))
        accuracies = [is_right[labels == label].mean() for label in np.unique(labels)]
        return {"worst_class_accuracy": float(min(accuracies))}
