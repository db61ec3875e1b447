"""Trainer: the inner loop. Draws batches, runs the task's steps, gathers their metrics."""

import contextlib
import functools
import itertools
from collections.abc import Iterator
from typing import Any, Optional

import keras
from keras import ops

from hortus import engine as engines
from hortus.core import base_task, checkpoints, compat, divergence
from hortus.core import config_definitions as cfg
from hortus.core.metrics import LossMean, flat, plain, reset, result, to_float
from hortus.core.runner import EvalRunner, TrainRunner
from hortus.engine import base as engine_base
from hortus.engine import kernels
from hortus.engine.variables import find_variables, seed_states


class Trainer(TrainRunner, EvalRunner):
    """Trains and evaluates one model. Every method can be replaced in a subclass.

    Made inside the scope of a strategy:

        with strategy.scope():
            trainer = Trainer(config, task, model, optimizer, train=True, evaluate=True)
        trainer.train(100)

    Args:
        config: the experiment.
        task: what to learn.
        model: from `task.build_model()`.
        optimizer: from `task.create_optimizer(...)`; None is enough to evaluate.
        train: whether `train` will be called.
        evaluate: whether `evaluate` will be called.
        train_dataset: instead of the one that the task builds from `config.task.train_data`.
        validation_dataset: instead of the one from `config.task.validation_data`.
        checkpoint_exporter: keeps the best checkpoint, see `checkpoints.BestCheckpointExporter`.
    """

    def __init__(
        self,
        config: cfg.ExperimentConfig,
        task: base_task.Task,
        model: keras.Model,
        optimizer: Optional[Any] = None,
        train: bool = True,
        evaluate: bool = True,
        train_dataset: Optional[Any] = None,
        validation_dataset: Optional[Any] = None,
        checkpoint_exporter: Optional[checkpoints.BestCheckpointExporter] = None,
    ):
        if train and optimizer is None:
            raise ValueError("a Trainer that trains needs an optimizer")
        self.config, self.task, self.model, self.optimizer = config, task, model, optimizer
        self._does_train, self._does_evaluate = train, evaluate
        self._train_dataset, self._validation_dataset = train_dataset, validation_dataset
        self._checkpoint_exporter = checkpoint_exporter
        self.strategy = engines.current_strategy()
        runtime = config.runtime
        self.engine = engines.for_strategy(self.strategy, runtime.run_eagerly, runtime.enable_xla)
        self._global_step = keras.Variable(
            0, dtype="int32", trainable=False, aggregation="only_first_replica", name="global_step"
        )
        self._finite_steps = keras.Variable(
            0,
            dtype="int32",
            trainable=False,
            aggregation="sum",
            synchronization="on_read",
            name="finite_steps",
        )  # of all replicas, since `_counted_from`: those with a finite mean loss in their loop
        self._counted_from = 0
        self._train_loss = LossMean(name="training_loss")
        self._validation_loss = LossMean(name="validation_loss")
        self._train_metrics = self._build_metrics(training=True) if train else []
        self._validation_metrics = self._build_metrics(training=False) if evaluate else []
        losses = [self._train_loss, self._validation_loss]
        metrics = flat(self._train_metrics, self._validation_metrics, losses)
        compat.with_old_names(metrics, self, task)
        self._train_feed: Optional[engine_base.Feed] = None
        self._checkpoint: Optional[checkpoints.Checkpoint] = None
        self._compiled: dict[str, Any] = {}
        self._average = average_of(optimizer)
        if self._average is not None:
            self._average.shadow_copy(model)
        if optimizer is not None:
            self.engine.prepare_optimizer(optimizer, model.trainable_variables)
        self.engine.align(self._state())
        if train:
            self._diverge_seeds()

    def _build_metrics(self, training: bool) -> Any:
        with self.engine.metric_scope():
            build = functools.partial(self.task.build_metrics, training=training)
            metrics = compat.build_metrics(build) or []
        for metric in flat(metrics):
            self.engine.check_metric(metric)
        return metrics

    # ---- what a controller, a task or a user reads ------------------------------------------

    @property
    def global_step(self) -> Any:
        """Steps trained so far: a variable, saved with every checkpoint."""
        return self._global_step

    @property
    def train_loss(self) -> keras.metrics.Metric:
        return self._train_loss

    @property
    def validation_loss(self) -> keras.metrics.Metric:
        return self._validation_loss

    @property
    def train_metrics(self) -> list[keras.metrics.Metric]:
        return self._train_metrics

    @property
    def validation_metrics(self) -> list[keras.metrics.Metric]:
        return self._validation_metrics

    @property
    def checkpoint_exporter(self) -> Optional[checkpoints.BestCheckpointExporter]:
        return self._checkpoint_exporter

    @property
    def timing(self) -> engine_base.Timing:
        return self.engine.timing

    @property
    def train_dataset(self) -> Any:
        """Built on first use."""
        if self._train_dataset is None:
            self._train_dataset = self._build_inputs(self.config.task.train_data, True)
        return self._train_dataset

    @property
    def validation_dataset(self) -> Any:
        """Built on first use."""
        if self._validation_dataset is None:
            self._validation_dataset = self._build_inputs(self.config.task.validation_data, False)
        return self._validation_dataset

    def _build_inputs(self, params: cfg.DataConfig, is_training: bool) -> Any:
        context = self.engine.input_context(is_training)
        dataset = self.task.build_inputs(params, context)
        if is_training and self.config.trainer.overfit_batches:
            dataset = self.engine.repeat_first(dataset, self.config.trainer.overfit_batches)
        return dataset

    @property
    def train_feed(self) -> engine_base.Feed:
        """The training data, from the position where the run is."""
        if self._train_feed is None:
            self._train_feed = self.engine.feed(
                self.train_dataset,
                is_training=True,
                is_exact=self.config.runtime.deterministic,
            )
        return self._train_feed

    @property
    def checkpoint(self) -> checkpoints.Checkpoint:
        """All that it takes to go on exactly here."""
        if self._checkpoint is None:
            items: dict[str, Any] = {"model": self.model, "global_step": self._global_step}
            if self.optimizer is not None:
                items["optimizer"] = self.optimizer
            if self._does_train:
                items["train_loss"] = self._train_loss
                items["train_metrics"] = [
                    metric
                    for metric in flat(self._train_metrics)
                    if isinstance(metric, keras.metrics.Metric)
                ]
                items["task"] = find_variables(self.task)
                items["data"] = self.train_feed
            self._checkpoint = checkpoints.Checkpoint(**items)
        return self._checkpoint

    def initialize(self) -> None:
        """Loads the weights that the task starts from. Called for a new run, not on resume."""
        self.task.initialize(self.model)

    def after_restore(self) -> None:
        """Called when a checkpoint has been restored."""
        self._finite_steps.assign(0)
        self._counted_from = int(to_float(self.global_step))
        self._diverge_seeds()

    @contextlib.contextmanager
    def keeping_data(self) -> Iterator[None]:
        """A restore inside leaves the training data where they are."""
        self.train_feed.stays = True
        try:
            yield
        finally:
            self.train_feed.stays = False

    def _diverge_seeds(self) -> None:
        self.engine.diverge_seeds(seed_states(find_variables(self.model, self.task)))

    def _state(self) -> list[Any]:
        """Every variable that a step can touch."""
        return find_variables(
            self.model,
            [] if self.optimizer is None else self.optimizer,
            [self._global_step, self._finite_steps, self._train_loss, self._validation_loss],
            flat(self._train_metrics, self._validation_metrics),
            self.task,
            self,
        )

    # ---- training ---------------------------------------------------------------------------

    splits_loops = True

    def train(self, num_steps: int) -> dict[str, Any]:
        """Trains `num_steps` steps and returns the logs of `train_loop_end`."""
        return self.train_part(num_steps, first=True, last=True)

    def train_part(self, num_steps: int, first: bool, last: bool) -> dict[str, Any]:
        """A part of a loop, so that a controller can cut long ones without cutting their logs."""
        if first:
            self.train_loop_begin()
        if num_steps:
            if "train" not in self._compiled:
                eagerly = not self.config.trainer.train_tf_function
                self._compiled["train"] = self.engine.train_loop(
                    self._train_step, self._state(), eagerly
                )
            self._compiled["train"](self.train_feed, num_steps)
            self.timing.examples += num_steps * self.config.task.train_data.global_batch_size
        if not last:
            return {}
        with compat.learning_rate_for(self, self.optimizer):
            return plain(self.train_loop_end() or {})

    def train_loop_begin(self) -> None:
        """Before the first step of a loop: metrics start anew."""
        self.join()
        for metric in flat(self.train_metrics, self.train_loss):
            reset(metric)

    def _train_step(self, iterator: Iterator) -> Any:
        """`train_step`, and the bookkeeping that a subclass which replaces it must not lose."""
        logs = self.train_step(iterator)
        self.strategy.run(self._count_finite)
        return logs

    def _count_finite(self) -> None:
        # The sum is not finite from the first loss on that is not.
        kernels.add_number(self._finite_steps, ops.isfinite(self._train_loss.total))

    def train_step(self, iterator: Iterator) -> Any:
        """One step, compiled: takes a batch and runs the task's step on every replica."""

        def step_fn(inputs: Any) -> Any:
            def run(part: Any, optimizer: Any) -> Any:
                return self.task.train_step(
                    part, model=self.model, optimizer=optimizer, metrics=self.train_metrics
                )

            count = self.config.trainer.gradient_accumulation_steps
            logs = self.engine.accumulate(run, inputs, self.optimizer, count)
            self._train_loss.update_state(logs[self.task.loss])
            kernels.add_number(self._global_step, 1)
            return logs

        inputs = self.next_train_inputs(iterator)
        return self.strategy.run(self.engine.with_xla(step_fn), args=(inputs,))

    def next_train_inputs(self, iterator: Iterator) -> Any:
        """The next batch for `train_step`."""
        return next(iterator)

    def train_loop_end(self) -> dict[str, Any]:
        """After the last step of a loop: what it reports."""
        self.join()
        metrics = flat(self.train_metrics, self.train_loss)
        logs = {metric.name: result(metric) for metric in metrics}
        if self.optimizer is not None:
            logs["learning_rate"] = to_float(self.optimizer.learning_rate)
        return logs

    # ---- evaluation -------------------------------------------------------------------------

    def evaluate(self, num_steps: int = -1) -> dict[str, Any]:
        """Evaluates on `num_steps` batches, -1 for all, and returns the logs of `eval_end`."""
        try:
            self.eval_begin()
            # Here and not in the hooks, so that replacing those cannot lose the weights.
            self._swap_averages()
            aggregated = self._evaluate(num_steps)
            with compat.learning_rate_for(self, self.optimizer):
                return plain(self.eval_end(aggregated) or {})
        finally:
            self._swap_averages(back=True)

    def _evaluate(self, num_steps: int) -> Any:
        if "eval" not in self._compiled:
            eagerly = not self.config.trainer.eval_tf_function
            self._compiled["eval"] = self.engine.eval_step(self.eval_step, self._state(), eagerly)
        feed = self.engine.feed(self.validation_dataset, is_training=False)
        aggregated = None
        for done in itertools.count() if num_steps < 0 else range(num_steps):
            self.poll()
            try:
                logs = self._compiled["eval"](feed)
            except StopIteration:
                if done == 0:
                    raise ValueError(
                        "the validation data is empty: see task.validation_data; with "
                        "drop_remainder, fewer examples than a batch are none"
                    ) from None
                break
            aggregated = self.eval_reduce(aggregated, logs)
        return aggregated

    @contextlib.contextmanager
    def trial(self) -> Iterator[None]:
        """An evaluation inside does not count for the best checkpoint."""
        exporter, self._checkpoint_exporter = self._checkpoint_exporter, None
        try:
            yield
        finally:
            self._checkpoint_exporter = exporter

    def eval_begin(self) -> None:
        """Before the first batch: metrics start anew. Averaged weights come in after it."""
        self.join()
        for metric in flat(self.validation_metrics, self.validation_loss):
            reset(metric)

    def eval_step(self, iterator: Iterator) -> Any:
        """One batch, compiled: runs the task's step on every replica and puts the logs together."""

        def step_fn(inputs: Any) -> Any:
            logs = self.task.validation_step(
                inputs, model=self.model, metrics=self.validation_metrics
            )
            if self.task.loss in logs:
                self._count_loss(logs[self.task.loss], engine_base.batch_size(inputs))
            return logs

        inputs, passthrough_logs = self.next_eval_inputs(iterator)
        logs = self.strategy.run(self.engine.skip_empty(step_fn), args=(inputs,))
        return {**passthrough_logs, **self.engine.merge_replicas(logs)}

    def _count_loss(self, loss: Any, size: Optional[Any]) -> None:
        # By its examples, as the last batch may be smaller.
        weight = ops.cast(1 if size is None else size, "float32")
        self._validation_loss.update_state(loss, sample_weight=weight)

    def next_eval_inputs(self, iterator: Iterator) -> tuple[Any, dict[str, Any]]:
        """The next batch for `eval_step`, and logs to pass on beside those of the task."""
        return next(iterator), {}

    def eval_reduce(self, state: Any = None, step_outputs: Optional[dict] = None) -> Any:
        """Takes in the logs of one batch, in Python."""
        return self.task.aggregate_logs(state, step_outputs or {})

    def eval_end(self, aggregated_logs: Any = None) -> dict[str, Any]:
        """After the last batch: what an evaluation reports. The best checkpoint is kept."""
        self.join()
        metrics = flat(self.validation_metrics)
        logs = {metric.name: result(metric) for metric in metrics}
        if to_float(self._validation_loss.count) > 0:
            logs[self._validation_loss.name] = result(self._validation_loss)
        if aggregated_logs is not None:
            step = int(to_float(self.global_step))
            logs.update(self.task.reduce_aggregated_logs(aggregated_logs, global_step=step))
        if self._checkpoint_exporter is not None:
            # The weights that gave these logs, and no more: a start for others, not for this run.
            weights = checkpoints.Checkpoint(model=self.model, global_step=self._global_step)
            self._checkpoint_exporter.maybe_export_checkpoint(
                weights, logs, int(to_float(self.global_step))
            )
        return logs

    def _swap_averages(self, back: bool = False) -> None:
        """Evaluates with the averaged weights, where the optimizer keeps an average."""
        if self._average is not None and self._average.is_swapped == back:
            self._average.swap_weights()

    def join(self) -> None:
        """Waits until what was started is done; a place to hook in. Steps are synchronous here."""

    # ---- when a loss is not finite ----------------------------------------------------------

    @property
    def first_bad_step(self) -> Optional[int]:
        """The first step since the last restore whose loss was not finite; None if there is none.

        Where no recovery restores a checkpoint, training may go on with finite losses: the steps in
        between then count as if they came first.
        """
        finite = int(to_float(self._finite_steps)) // self.engine.num_programs
        first = self._counted_from + finite + 1
        return first if first <= int(to_float(self.global_step)) else None

    def find_divergence(
        self,
        max_steps: int,
        folder: str,
        loss_upper_bound: float = float("inf"),
        suspect: Optional[int] = None,
    ) -> Optional[divergence.Divergence]:
        """Goes on step by step until one diverges; saves that step's batch.

        Call it after a restore: the same data comes again, in the same order.

        Args:
            max_steps: how far to go.
            folder: where the batch is saved.
            loss_upper_bound: a loss above this counts as diverged.
            suspect: what `first_bad_step` was; its batch is saved if no step diverges again.
        """
        single = self.engine.single_step(self.train_step, self._state())
        return divergence.find(self, single, max_steps, folder, loss_upper_bound, suspect)


def average_of(optimizer: Any) -> Optional[Any]:
    """The moving average of weights among an optimizer and those inside of it, or None."""
    while optimizer is not None:
        if hasattr(optimizer, "swap_weights"):
            return optimizer
        optimizer = getattr(optimizer, "inner_optimizer", None)
    return None
