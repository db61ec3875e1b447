"""Task: the model, the data, the losses, the metrics and one step of a learning problem."""

import abc
import os
from collections.abc import Iterable, Sequence
from typing import Any, Optional

import keras
from keras import ops

from hortus import engine, optimization
from hortus.core import checkpoints, metric_factory
from hortus.core import config_definitions as cfg
from hortus.engine import loss_scale
from hortus.optimization import privacy


class Task(abc.ABC):
    """Everything that is particular to a learning problem; the trainer does the rest.

    A subclass says what the model, the inputs, the losses and the metrics are, and may replace a
    step. It is written once, with `keras.ops`, and runs on both engines and under every strategy.
    Register it for its config with `task_factory.register_task_cls`.

    Args:
        params: the task's config.
        logging_dir: where the run keeps its files, if it keeps any.
        name: defaults to the config's name.
    """

    loss = "loss"
    """Key of the loss in the logs of a step."""

    def __init__(
        self, params: cfg.TaskConfig, logging_dir: Optional[str] = None, name: Optional[str] = None
    ):
        self._task_config = params
        self._logging_dir = os.fspath(logging_dir) if logging_dir else ""
        self._name = name or params.name or type(self).__name__

    @property
    def task_config(self) -> Any:
        return self._task_config

    @property
    def logging_dir(self) -> str:
        return self._logging_dir

    @property
    def name(self) -> str:
        return self._name

    def learnt_classes(self) -> Sequence[str]:
        """Names of the model's classes, which a training keeps in the folder of the run.

        In the order of their numbers; empty where the data that was read does not tell them.
        """
        return ()

    # ---- what a task is made of -------------------------------------------------------------

    @abc.abstractmethod
    def build_model(self) -> keras.Model:
        """The model, with all of its variables made."""

    @abc.abstractmethod
    def build_inputs(self, params: Any, input_context: Optional[Any] = None) -> Any:
        """A tf.data.Dataset of batches, of any structure that `train_step` understands.

        Args:
            params: the config of the data, `task_config.train_data` or `.validation_data`.
            input_context: which part a host has to read; a batch has
                `input_context.get_per_replica_batch_size(params.global_batch_size)` examples.
        """

    def build_losses(
        self, labels: Any, model_outputs: Any, aux_losses: Optional[Any] = None
    ) -> Any:
        """The loss, a scalar: the mean over the examples at hand plus `aux_losses`."""
        del labels, model_outputs
        return add_losses(ops.convert_to_tensor(0.0), aux_losses)

    def build_metrics(self, training: bool = True) -> list[keras.metrics.Metric]:
        """Metrics to update in a step of training, or of evaluation."""
        del training
        return []

    def build_extra_metrics(self) -> list[keras.metrics.Metric]:
        """Those that `task_config.extra_metrics` names, for `build_metrics` to add to its own."""
        names = self.task_config.extra_metrics
        return [metric_factory.build_metric(name, self.task_config) for name in names]

    @classmethod
    def create_optimizer(
        cls,
        optimizer_config: optimization.OptimizationConfig,
        runtime_config: Optional[cfg.RuntimeConfig] = None,
        dp_config: Optional[Any] = None,
    ) -> Any:
        """The optimizer with its schedule, and loss scaling if the run computes in float16."""
        transformers = None
        if dp_config is not None:
            transformers = [
                privacy.PrivateGradients(dp_config.clipping_norm, dp_config.noise_multiplier)
            ]
        factory = optimization.OptimizerFactory(optimizer_config)
        optimizer = factory.build_optimizer(
            factory.build_learning_rate(), gradient_transformers=transformers
        )
        if runtime_config is not None and uses_float16(runtime_config.mixed_precision_dtype):
            optimizer = loss_scale.scale_losses(optimizer, runtime_config.loss_scale)
        return optimizer

    def initialize(self, model: keras.Model) -> None:
        """Loads what `task_config.init_checkpoint` names into the new model, and says what it did.

        `init_checkpoint_modules`, where the config has it, chooses among the model's
        `checkpoint_items`.
        """
        path = self.task_config.init_checkpoint
        if path:
            modules = self.task_config.get("init_checkpoint_modules", "all")
            averages = self.task_config.get("init_checkpoint_averages", False)
            report = checkpoints.load_modules(model, path, modules, averages=averages)
            report.show()

    def input_error(self, error: Exception) -> Optional[Exception]:
        """What to tell a user instead of an error that broken data has caused.

        Called with whatever ended a run. None, where the data is not to blame, lets it pass.
        """
        del error
        return None

    def notes(self) -> Iterable[str]:
        """What a user should know when a run has ended, such as examples that were left out."""
        return ()

    # ---- tools ------------------------------------------------------------------------------

    def build_service(self, class_names: Sequence[str] = (), **facts: Any) -> Optional[Any]:
        """How the model is served: what predictions and exports do before and after it.

        Args:
            class_names: in the order of the classes' numbers; empty where they are not known.
            **facts: what the service's `facts` told when the model was exported.

        Returns:
            A `hortus.vision.serving.services.service.Service`; None where there is none.
        """
        del class_names, facts
        return None

    def build_data_tools(self) -> Optional[Any]:
        """How the data is checked, drawn and converted.

        Returns:
            A `hortus.vision.data.tools.data_tools.DataTools`; None where there is none.
        """
        return None

    # ---- steps ------------------------------------------------------------------------------

    def train_step(
        self, inputs: Any, model: keras.Model, optimizer: Any, metrics: Optional[Sequence] = None
    ) -> dict[str, Any]:
        """Forward, backward, update; runs compiled, on each replica.

        Args:
            inputs: a batch: (features, labels), or features alone.
            model: the model.
            optimizer: `apply_gradients` sums over replicas, unscales, clips, and updates.
            metrics: what `build_metrics(training=True)` returned.

        Returns:
            Logs, with the loss under `self.loss`.
        """
        features, labels = split_inputs(inputs)

        def forward() -> tuple[Any, Any]:
            outputs = ops_in_float32(model(features, training=True))
            return self.build_losses(labels, outputs, aux_losses=model.losses), outputs

        variables = model.trainable_variables
        (loss, outputs), grads = engine.value_and_grad(forward, variables, optimizer)
        optimizer.apply_gradients(list(zip(grads, variables, strict=True)))
        self.process_metrics(metrics or [], labels, outputs)
        return {self.loss: loss}

    def validation_step(
        self, inputs: Any, model: keras.Model, metrics: Optional[Sequence] = None
    ) -> dict[str, Any]:
        """Forward and metrics. What it returns beside the loss reaches `aggregate_logs`."""
        features, labels = split_inputs(inputs)
        outputs = ops_in_float32(self.inference_step(features, model))
        loss = self.build_losses(labels, outputs, aux_losses=model.losses)
        self.process_metrics(metrics or [], labels, outputs)
        return {self.loss: loss}

    def inference_step(self, inputs: Any, model: keras.Model) -> Any:
        """The model's outputs for features."""
        return model(inputs, training=False)

    def process_metrics(
        self,
        metrics: Sequence[keras.metrics.Metric],
        labels: Any,
        model_outputs: Any,
        **kwargs: Any,
    ) -> None:
        """Updates the metrics with a batch."""
        for metric in metrics:
            metric.update_state(labels, model_outputs, **kwargs)

    # ---- evaluation in Python ---------------------------------------------------------------

    def aggregate_logs(self, state: Any, step_outputs: dict[str, Any]) -> Any:
        """Takes in the logs of one evaluation step, as NumPy arrays with all examples of the batch.

        Runs in Python, after the step, for metrics that cannot be compiled. Returning anything but
        None makes the trainer call `reduce_aggregated_logs` at the end.

        Args:
            state: what the last call returned; None at first.
            step_outputs: what `validation_step` returned, of all replicas and hosts.
        """
        del step_outputs
        return state

    def reduce_aggregated_logs(
        self, aggregated_logs: Any, global_step: Optional[int] = None
    ) -> dict:
        """The metrics of a whole evaluation, from what `aggregate_logs` gathered."""
        del aggregated_logs, global_step
        return {}


def split_inputs(inputs: Any) -> tuple[Any, Any]:
    """Features and labels of a batch; None for labels that are not there."""
    if isinstance(inputs, tuple) and len(inputs) == 2:
        return inputs
    return inputs, None


def add_losses(loss: Any, aux_losses: Optional[Any]) -> Any:
    """The loss plus a list of others, such as `model.losses`."""
    for other in aux_losses or ():
        loss = loss + ops.cast(other, loss.dtype)
    return loss


def ops_in_float32(outputs: Any) -> Any:
    """Outputs of a mixed-precision model, for losses and metrics that need the precision."""

    def cast(value: Any) -> Any:
        is_low = keras.backend.standardize_dtype(value.dtype) in ("float16", "bfloat16")
        return ops.cast(value, "float32") if is_low else value

    return keras.tree.map_structure(cast, outputs)


def uses_float16(mixed_precision_dtype: Optional[str]) -> bool:
    """Whether gradients can underflow, so that the loss has to be scaled."""
    return mixed_precision_dtype in ("float16", "mixed_float16")
