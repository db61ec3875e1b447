"""run_experiment: puts model, optimizer, trainer, checkpoints, summaries and actions together."""

import contextlib
import dataclasses
import functools
import inspect
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, Optional, ParamSpec, TypeVar, Union

import keras
from absl import logging

from hortus import engine
from hortus.core import actions as actions_lib
from hortus.core import (
    base_task,
    base_trainer,
    checkpoints,
    init_weights,
    modes,
    run_record,
    summary_factory,
    train_utils,
)
from hortus.core import config_definitions as cfg
from hortus.core.actions.action import Actions, as_actions
from hortus.core.checkpoints import store
from hortus.core.controller import Controller
from hortus.core.metrics_history import MetricsHistory
from hortus.core.modes import EVAL_MODES, MODES, TRAIN_MODES
from hortus.core.progress import Progress, peak_memory
from hortus.core.run_folder import RunFolder
from hortus.core.run_lock import RunLock
from hortus.core.summary_manager import SummaryManagerInterface

__all__ = ["EVAL_MODES", "MODES", "TRAIN_MODES", "ExperimentRunner", "run_experiment"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@dataclasses.dataclass(eq=False)
class ExperimentRunner:
    """One run of an experiment. Subclass it to replace a part, and call `run`.

    Nothing in the folder changes before the run has its weights: restored, or new ones. From then
    on the folder holds the config and the record of the run, and a lock for as long as it trains.
    """

    distribution_strategy: Any
    """From `distribute_utils.get_distribution_strategy`."""
    task: base_task.Task
    """Made in its scope."""
    mode: str
    """What to do, one of `hortus.core.modes.MODES`."""
    params: cfg.ExperimentConfig
    """The experiment's config."""
    model_dir: "str | os.PathLike[str]"
    """Where everything is written; the same one resumes a run."""
    run_post_eval: bool = False
    """Whether to return the logs of an evaluation after training."""
    save_summary: bool = True
    """Whether to write TensorBoard summaries."""
    train_actions: Actions = None
    """Called with the logs of each training loop, beside those of the config."""
    eval_actions: Actions = None
    """Called with the logs of each evaluation."""
    trainer: Optional[base_trainer.Trainer] = None
    """Instead of a `Trainer` for the config."""
    controller_cls: type = Controller
    """Instead of `Controller`."""
    summary_manager: Optional[SummaryManagerInterface] = None
    """Writes training's summaries, instead of the default."""
    eval_summary_manager: Optional[SummaryManagerInterface] = None
    """The same for evaluations."""
    enable_async_checkpointing: bool = True
    """Whether checkpoints are written while training goes on."""
    trainer_cls: type[base_trainer.Trainer] = base_trainer.Trainer
    """Instead of `Trainer`, with the same arguments."""

    def __post_init__(self) -> None:
        modes.get(self.mode)  # an unknown one is an error
        self._lock: Optional[RunLock] = None
        self.model_dir = os.fspath(self.model_dir)

    @property
    def strategy(self) -> Any:
        return self.distribution_strategy

    @property
    def folder(self) -> RunFolder:
        """What is where in `model_dir`."""
        return RunFolder(self.model_dir)

    @property
    def does_train(self) -> bool:
        return modes.get(self.mode).trains

    @property
    def does_evaluate(self) -> bool:
        return modes.get(self.mode).evaluates or self.run_post_eval

    # ---- parts ------------------------------------------------------------------------------

    def build_trainer(self) -> base_trainer.Trainer:
        """The trainer, in the scope of the strategy."""
        trainer = self.params.trainer
        with self.strategy.scope():
            model = self.task.build_model()
            optimizer = None
            if self.does_train or trainer.optimizer_config.ema is not None:
                optimizer = self.task.create_optimizer(
                    trainer.optimizer_config,
                    self.params.runtime,
                    self.params.task.differential_privacy_config,
                )
            return self.trainer_cls(
                self.params,
                self.task,
                model,
                optimizer,
                train=self.does_train,
                evaluate=self.does_evaluate,
                checkpoint_exporter=self.build_checkpoint_exporter(),
            )

    def build_lock(self) -> contextlib.AbstractContextManager:
        """What keeps others from training in the folder: for the chief of those who do."""
        if self.does_train and engine.for_strategy(self.strategy).is_chief:
            self._lock = RunLock(self.model_dir)
            return self._lock
        return contextlib.nullcontext()

    def write_record(self, trainer: base_trainer.Trainer) -> None:
        """Writes the config and who the run is; the first that changes in the folder.

        Called on the chief of a training, when it has its weights.
        """
        for line in train_utils.changes_since_last_run(self.params, self.model_dir):
            logging.warning(line)
        train_utils.serialize_config(self.params, self.model_dir)
        run_record.write(self.model_dir, self.params, engine.name())
        if names := self.task.learnt_classes():
            train_utils.save_class_names(names, self.model_dir)

    def build_checkpoint_exporter(self) -> Optional[checkpoints.BestCheckpointExporter]:
        """Keeps the best checkpoint, if the config asks for it."""
        trainer = self.params.trainer
        if not (trainer.best_checkpoint_export_subdir and trainer.best_checkpoint_eval_metric):
            return None
        return checkpoints.BestCheckpointExporter(
            self.folder.best(trainer.best_checkpoint_export_subdir),
            trainer.best_checkpoint_eval_metric,
            trainer.best_checkpoint_metric_comp,
        )

    def build_checkpoint_manager(
        self, trainer: base_trainer.Trainer
    ) -> checkpoints.CheckpointManager:
        """Writes and restores the run's checkpoints."""
        return checkpoints.CheckpointManager(
            trainer.checkpoint,
            self.model_dir,
            max_to_keep=self.params.trainer.max_to_keep,
            asynchronous=self.enable_async_checkpointing,
            is_chief=trainer.engine.is_chief,
            host_index=trainer.engine.host_index,
            host_count=trainer.engine.num_hosts,
            config=self.params.as_dict(),
        )

    def build_train_actions(self, trainer: base_trainer.Trainer) -> list:
        """What the config asks for after each training loop, then the caller's."""
        config = self.params.trainer
        found: list[Any] = []
        if self._lock is not None:
            found.append(_KeepsLock(self._lock))
        if config.preemption_on_demand_checkpoint:
            found.append(actions_lib.Preemption())
        if config.recovery_max_trials >= 0:
            found.append(
                actions_lib.Recovery(
                    config.loss_upper_bound,
                    config.recovery_begin_steps,
                    config.recovery_max_trials,
                    folder=self.folder.diverged,
                )
            )
        if config.max_seconds is not None:
            found.append(actions_lib.MaxTime(config.max_seconds))
        found += actions_lib.build_actions(config.train_actions, self._action_context(trainer))
        return found + as_actions(self.train_actions)

    def _action_context(self, trainer: base_trainer.Trainer) -> actions_lib.Context:
        return actions_lib.Context(
            self.params, os.fspath(self.model_dir), trainer, bool(trainer.engine.is_chief)
        )

    def build_eval_actions(self, trainer: base_trainer.Trainer) -> list:
        """What the config asks for after each evaluation, then the caller's."""
        found: list[Any] = []
        config, stopping = self.params.trainer, self.params.trainer.early_stopping
        if stopping is not None and stopping.patience and self.does_train:
            comparison = stopping.metric_comp or config.best_checkpoint_metric_comp
            found.append(
                actions_lib.EarlyStopping(
                    stopping.metric or config.best_checkpoint_eval_metric,
                    stopping.patience,
                    stopping.min_delta,
                    higher_is_better=comparison == "higher",
                    filename=self.folder.early_stopping,
                    write=trainer.engine.is_chief,
                )
            )
        average = base_trainer.average_of(trainer.optimizer)
        if average is not None and self.does_train:
            manager = checkpoints.CheckpointManager(
                checkpoints.Checkpoint(model=trainer.model, global_step=trainer.global_step),
                self.folder.averages,
                max_to_keep=1,
                asynchronous=self.enable_async_checkpointing,
                is_chief=trainer.engine.is_chief,
                host_index=trainer.engine.host_index,
                host_count=trainer.engine.num_hosts,
            )
            found.append(actions_lib.EMACheckpoint(average, manager))
        found += actions_lib.build_actions(config.eval_actions, self._action_context(trainer))
        return found + as_actions(self.eval_actions)

    def _build_summary(self, folder: Optional[str]) -> SummaryManagerInterface:
        name = self.params.trainer.summary or "scalars"
        return summary_factory.build_summary(name, folder, self.params)

    def build_controller(
        self, trainer: base_trainer.Trainer, manager: checkpoints.CheckpointManager
    ) -> Controller:
        """The outer loop."""
        config, is_chief = self.params.trainer, trainer.engine.is_chief
        writes = self.save_summary and is_chief
        validation = self.folder.validation_summaries(config.validation_summary_subdir)
        train_summaries = self.summary_manager or self._build_summary(
            self.folder.train_summaries if writes and self.does_train else None
        )
        eval_summaries = self.eval_summary_manager or self._build_summary(
            validation if writes and self.does_evaluate else None
        )
        history = MetricsHistory(self.folder.metrics) if is_chief else None
        with_hosts = {} if trainer.engine.num_hosts == 1 else {"any_host": trainer.engine.any_host}
        return self.controller_cls(
            trainer=trainer if self.does_train else None,
            evaluator=trainer if self.does_evaluate else None,
            global_step=trainer.global_step,
            steps_per_loop=config.steps_per_loop,
            checkpoint_manager=manager,
            checkpoint_interval=config.checkpoint_interval,
            summary_interval=config.summary_interval,
            summary_manager=train_summaries,
            eval_summary_manager=eval_summaries,
            history=history,
            train_actions=self.build_train_actions(trainer) if self.does_train else None,
            eval_actions=self.build_eval_actions(trainer) if self.does_evaluate else None,
            progress=Progress(enabled=is_chief),
            strategy=self.strategy,
            **with_hosts,
        )

    # ---- the run ----------------------------------------------------------------------------

    def run(self) -> tuple[keras.Model, dict[str, Any]]:
        """Runs the experiment; returns the model and the logs of the last evaluation."""
        if self.does_train and self.params.trainer.fast_dev_run:
            return self._run_briefly()
        self._check_start()
        with self.build_lock():
            return self._run_in_folder()

    def _check_start(self) -> None:
        """Tells early of weights that cannot be had, if the run would start from them.

        A task that initialises its model itself may know better.
        """
        is_usual = type(self.task).initialize is base_task.Task.initialize
        if is_usual and self.mode != "continuous_eval" and not store.find(self.folder.path):
            init_weights.check(self.params)

    def _run_in_folder(self) -> tuple[keras.Model, dict[str, Any]]:
        with self._explained():
            trainer = self.trainer or self.build_trainer()
        if trainer.engine.num_replicas != self.strategy.num_replicas_in_sync:
            raise ValueError("the trainer has to be made inside of `with strategy.scope():`")
        manager = self.build_checkpoint_manager(trainer)
        controller = self.build_controller(trainer, manager)
        try:
            with self._explained():
                logs = self._run(trainer, controller)
        finally:
            manager.close()
            controller.summary_manager.close()
            controller.eval_summary_manager.close()
        for note in self.task.notes():
            controller.progress.say(note)
        memory = peak_memory()
        if memory:
            logging.info("Peak memory of this process: %.2f GB", memory / 1e9)
        return trainer.model, logs

    def _run(self, trainer: base_trainer.Trainer, controller: Controller) -> dict[str, Any]:
        config = self.params.trainer
        self._resume_or_initialize(trainer, controller)
        if self.does_train and trainer.engine.is_chief:
            self.write_record(trainer)
        if self.mode == "eval":
            return controller.evaluate(config.validation_steps)
        if self.mode == "continuous_eval":
            return controller.evaluate_continuously(
                config.validation_steps,
                timeout=config.continuous_eval_timeout,
                last_step=config.train_steps or None,
            )
        if self.does_evaluate and controller.step == 0:
            controller.sanity_check(config.sanity_validation_steps)
        interval = modes.get(self.mode).interval
        if interval:
            return controller.train_and_evaluate(
                config.train_steps, config.validation_steps, getattr(config, interval)
            )
        controller.train(config.train_steps)
        return controller.evaluate(config.validation_steps) if self.does_evaluate else {}

    def _resume_or_initialize(
        self, trainer: base_trainer.Trainer, controller: Controller
    ) -> Optional[int]:
        start = time.monotonic()
        step = controller.restore_checkpoint() if self.mode != "continuous_eval" else None
        if step is not None:
            logging.info("Restored step %d in %.1f s", step, time.monotonic() - start)
            controller.progress.say(f"Going on from {controller.latest_checkpoint}")
        elif self.mode == "eval" and not self.params.task.init_checkpoint:
            raise checkpoints.CheckpointError(
                f"there is no checkpoint in {self.model_dir} to evaluate: train first, or set "
                "task.init_checkpoint"
            )
        elif self.mode != "continuous_eval":
            trainer.initialize()
        return step

    def _run_briefly(self) -> tuple[keras.Model, dict[str, Any]]:
        """A few steps of everything, in a folder of their own that is thrown away."""
        wanted = self.params.trainer.fast_dev_run
        steps = 3 if wanted is True else int(wanted)
        changes: dict[str, Union[int, bool]] = {
            "fast_dev_run": False,
            "train_steps": steps,
            "validation_steps": steps,
            "validation_interval": steps,
            "steps_per_loop": steps,
            "summary_interval": steps,
            "checkpoint_interval": steps,
            "sanity_validation_steps": 0,
        }
        former = dict(vars(self))
        self.params = self.params.replace(trainer=changes)
        try:
            with tempfile.TemporaryDirectory(prefix="hortus_fast_dev_run_") as folder:
                self.model_dir = folder
                # Theirs is the folder of the run.
                for name in ("summary_manager", "eval_summary_manager"):
                    manager = getattr(self, name)
                    setattr(self, name, manager and manager.in_folder(os.path.join(folder, name)))
                return self.run()
        finally:
            vars(self).update(former)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns what the engine says of memory, disk and data into what a user can act on."""
        try:
            yield
        except Exception as error:
            if engine.disk.is_full(error):
                raise engine.disk.full_error(self.model_dir) from error
            this = engine.for_strategy(self.strategy)
            if this.is_out_of_memory(error):
                raise engine.EngineError(self._memory_advice(this.num_replicas)) from error
            better = self.task.input_error(error)
            if better is not None:
                raise better from error
            raise

    def _memory_advice(self, replicas: int) -> str:
        size = self.params.task.train_data.global_batch_size
        parts = self.params.trainer.gradient_accumulation_steps * 2
        advice = []
        if size % (parts * replicas) == 0:
            advice.append(
                f"trainer.gradient_accumulation_steps={parts} works off the same batch in parts"
            )
        smaller = size // 2 // replicas * replicas
        if smaller:
            advice.append(f"task.train_data.global_batch_size={smaller} takes a smaller one")
        if not self.params.runtime.mixed_precision_dtype:
            advice.append("runtime.mixed_precision_dtype=bfloat16 halves the activations")
        devices = "device" if replicas == 1 else "devices"
        return (
            f"a device ran out of memory with {size} examples per batch on {replicas} {devices}: "
            f"{', '.join(advice) or 'try a smaller model or smaller images'}"
        )


class _KeepsLock(actions_lib.Action):
    """Ends a training whose folder another process has taken over."""

    def __init__(self, lock: RunLock):
        self.lock = lock

    def poll(self) -> None:
        self.lock.check()

    def __call__(self, logs: Any) -> None:
        self.lock.check()


def _with_arguments_of(
    cls: Callable[_Arguments, ExperimentRunner],
) -> Callable[[Callable[[ExperimentRunner], _Result]], Callable[_Arguments, _Result]]:
    """A decorator for a function of a runner, which takes the runner's arguments instead."""

    def decorate(function: Callable[[ExperimentRunner], _Result]) -> Callable[_Arguments, _Result]:
        @functools.wraps(function)
        def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            return function(cls(*args, **kwargs))

        call.__signature__ = inspect.signature(cls)  # type: ignore[attr-defined]
        return call

    return decorate


@_with_arguments_of(ExperimentRunner)
def run_experiment(runner: ExperimentRunner) -> tuple[keras.Model, dict[str, Any]]:
    """Runs an experiment, or goes on with it; see `ExperimentRunner` for the arguments.

    Returns:
        The model, and the logs of the last evaluation: empty if there was none.
    """
    return runner.run()
