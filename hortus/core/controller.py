"""The outer loop of training: train, summarise, act, checkpoint, evaluate."""

import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, Optional, Union

from absl import logging

from hortus.core import compat
from hortus.core.actions.action import Action, Actions, as_actions
from hortus.core.actions.preemption import Preempted
from hortus.core.logs import Logs, as_scalar
from hortus.core.metrics_history import MetricsHistory
from hortus.core.pace import Pace
from hortus.core.progress import Progress
from hortus.core.summary_manager import SummaryManager, SummaryManagerInterface

TRAIN, VALIDATION = "train", "validation"
_POLL_SECONDS = 1.0


class _LeaveEvaluation(Exception):  # noqa: N818, no error
    """A signal came during an evaluation."""


class Controller:
    """Trains and evaluates, with everything that goes on around it.

    Loops end exactly where a summary, a checkpoint or an evaluation is due, whatever
    `steps_per_loop` is, and at the same steps after a restart. Whoever restarts a run calls
    `restore_checkpoint` and then trains as before: summaries past that step are dropped, and an
    evaluation that was due there and did not come to its end is made up for.

    Args:
        trainer: a `core.runner.TrainRunner`, or any object with `train(num_steps) -> logs`.
        evaluator: a `core.runner.EvalRunner`, or any object with `evaluate(num_steps) -> logs`.
        global_step: variable that the trainer counts steps with.
        steps_per_loop: steps between two looks at logs and actions, or a function of the step.
        checkpoint_manager: a `core.checkpoints.CheckpointManager`.
        checkpoint_interval: steps between two checkpoints; None writes one at the end.
        summary_interval: steps between two summaries of training; None writes one per loop.
        summary_dir: folder of training's summaries; None writes none.
        eval_summary_dir: folder of the evaluations' summaries; None takes `summary_dir`.
        summary_manager: writes training's summaries, instead of the default for `summary_dir`.
        eval_summary_manager: the same for evaluations.
        history: the run's `metrics.jsonl`; None writes none.
        train_actions: called with the logs of each training loop, before a checkpoint is written.
        eval_actions: called with the logs of each evaluation.
        progress: shows how far training is; None shows nothing.
        strategy: its scope is open around training and evaluation.
        any_host: whether a flag is true on any host, asked by all hosts at the same places; None
            for a single host.
        reaction_seconds: how long a part of a loop should take at most.
    """

    def __init__(
        self,
        *,
        trainer: Any = None,
        evaluator: Any = None,
        global_step: Any,
        steps_per_loop: Union[int, Callable[[int], int], None] = None,
        checkpoint_manager: Any = None,
        checkpoint_interval: Optional[int] = None,
        summary_interval: Optional[int] = None,
        summary_dir: "Optional[str | os.PathLike[str]]" = None,
        eval_summary_dir: "Optional[str | os.PathLike[str]]" = None,
        summary_manager: Optional[SummaryManagerInterface] = None,
        eval_summary_manager: Optional[SummaryManagerInterface] = None,
        history: Optional[MetricsHistory] = None,
        train_actions: Actions = None,
        eval_actions: Actions = None,
        progress: Optional[Progress] = None,
        strategy: Any = None,
        any_host: Optional[Callable[[bool], bool]] = None,
        reaction_seconds: float = 10.0,
    ):
        self.trainer = trainer
        self.evaluator = evaluator
        self.global_step = global_step
        self.steps_per_loop = steps_per_loop
        self.checkpoint_manager = checkpoint_manager
        self.checkpoint_interval = checkpoint_interval
        self.summary_interval = summary_interval
        self.summary_manager = summary_manager or SummaryManager(summary_dir)
        self.eval_summary_manager = eval_summary_manager or (
            SummaryManager(eval_summary_dir) if eval_summary_dir else self.summary_manager
        )
        self.history = history
        self.progress = progress or Progress(enabled=False)
        self.strategy = strategy
        self._is_alone = any_host is None
        self._any_host = any_host or bool
        self._train_runner = compat.as_train_runner(trainer)
        self._eval_runner = compat.as_eval_runner(evaluator)
        self._pace = Pace(
            reaction_seconds, self._any_host, can_split=self._train_runner.splits_loops
        )
        self._evaluates = False
        self._evaluated: set[int] = set()
        self._stop_reason: Optional[str] = None
        self._stop_signal: Optional[int] = None
        self._train_actions = as_actions(train_actions)
        self._eval_actions = as_actions(eval_actions)
        for action in self._actions:
            action.bind(self)
        self._eval_runner.watch(self._leave_evaluation_at_signal)
        for manager in (self.summary_manager, self.eval_summary_manager):
            manager.count_by(global_step)

    @property
    def step(self) -> int:
        """The global step."""
        number = as_scalar(self.global_step)
        if number is None:
            raise ValueError("the global step is no single number")
        return int(number)

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """Path of the newest checkpoint, or None."""
        return self.checkpoint_manager.latest_checkpoint if self.checkpoint_manager else None

    # ---- what to run ------------------------------------------------------------------------

    def train(self, steps: int) -> None:
        """Trains until the global step is `steps`, and writes a checkpoint there.

        Raises:
            Preempted: a signal came; a checkpoint was written.
        """
        self._run(steps, eval_steps=None, eval_interval=None)

    def train_and_evaluate(
        self, train_steps: int, eval_steps: int = -1, eval_interval: Optional[int] = None
    ) -> dict[str, Any]:
        """Trains until the global step is `train_steps`, evaluating on the way and at the end.

        Args:
            train_steps: the global step to train up to.
            eval_steps: batches per evaluation; -1 for all of the data.
            eval_interval: steps between two evaluations; None evaluates at the end only.

        Returns:
            The logs of the last evaluation; empty if there was nothing left to do.

        Raises:
            Preempted: a signal came; a checkpoint was written.
        """
        return self._run(train_steps, eval_steps, eval_interval)

    def _run(
        self, target: int, eval_steps: Optional[int], eval_interval: Optional[int]
    ) -> dict[str, Any]:
        self._evaluates = eval_steps is not None
        eval_logs: dict[str, Any] = {}
        with self._running(target):
            if self._evaluation_is_due(target, eval_interval):
                eval_logs = self._evaluate(eval_steps)  # the last run did not come to it
            while self._goes_on(target):
                logs = self._train_loop(*self._next_stop(target, eval_interval))
                self._summarise(logs)
                self._act(self._train_actions, logs)
                self._checkpoint_if_due(target)
                if self._evaluation_is_due(target, eval_interval):
                    eval_logs = self._evaluate(eval_steps)
        return eval_logs

    def evaluate(self, steps: int = -1) -> dict[str, Any]:
        """Evaluates at the present step: summaries, actions and all.

        Args:
            steps: batches to evaluate; -1 for all of the data.
        """
        try:
            return self._evaluate(steps)
        finally:
            self.progress.stop()

    def evaluate_continuously(
        self,
        steps: int = -1,
        timeout: Optional[float] = None,
        timeout_fn: Optional[Callable[[], bool]] = None,
        last_step: Optional[int] = None,
    ) -> dict[str, Any]:
        """Evaluates each new checkpoint that another process writes.

        Args:
            steps: batches per evaluation; -1 for all of the data.
            timeout: seconds without a new checkpoint after which to end; None waits for ever.
            timeout_fn: asked when the time is over, whether to end indeed.
            last_step: the step after whose evaluation to end.

        Returns:
            The logs of the last evaluation; empty if there was none.
        """
        logs: dict[str, Any] = {}
        for path in self._new_checkpoints(timeout, timeout_fn):
            try:
                self.restore_checkpoint(path)
            except (OSError, RuntimeError):
                if os.path.exists(path):
                    raise
                continue  # its writer has replaced it by a newer one
            logs = self.evaluate(steps)
            if last_step is not None and self.step >= last_step:
                break
        return logs

    def sanity_check(self, steps: int) -> None:
        """Evaluates a few batches for nothing, so that a fault in evaluation shows at once."""
        if steps > 0:
            with self._scope(), self._eval_runner.trial():
                self._eval_runner.evaluate(steps)

    # ---- checkpoints ------------------------------------------------------------------------

    def save_checkpoint(self) -> Optional[str]:
        """Writes a checkpoint of the present step, unless that is there; returns its path."""
        return self.checkpoint_manager.save(self.step) if self.checkpoint_manager else None

    def restore_checkpoint(self, path: Optional[str] = None) -> Optional[int]:
        """Restores a checkpoint, the newest if `path` is None.

        Returns:
            Its step, or None if there is no checkpoint.
        """
        if self.checkpoint_manager is None:
            return None
        step = self.checkpoint_manager.restore(path)
        if step is not None:
            runner = self._train_runner if self.trainer is not None else self._eval_runner
            runner.after_restore()
        return step

    def roll_back(self) -> Optional[int]:
        """Goes back to the last checkpoint amid training, as if what came later had not been.

        The data alone go on with what comes next, where the trainer can keep its place in them:
        the same batches would lead to the same place again. The checkpoint is written anew with
        that place in it.
        """
        with self._train_runner.keeping_data():
            step = self.restore_checkpoint()
        if step is not None:
            self._rewind()
            self.checkpoint_manager.save(step, force=True)
        return step

    # ---- stopping ---------------------------------------------------------------------------

    def request_stop(self, reason: str, signum: Optional[int] = None) -> None:
        """Asks for the end of training after the current loop, with a checkpoint.

        Args:
            reason: told to the user.
            signum: the signal that asks; it ends the process, too.
        """
        if self._stop_reason is None or (signum is not None and self._stop_signal is None):
            self._stop_reason, self._stop_signal = reason, signum

    def _is_stopping(self) -> bool:
        """Whether any host wants to stop; all hosts know of it then."""
        for action in self._actions:
            action.poll()
        if not self._any_host(self._stop_reason is not None):
            return False
        if not self._is_alone:
            for signum in (signal.SIGTERM, signal.SIGINT):
                if self._any_host(self._stop_signal == signum):
                    self.request_stop("another host was told to stop", signum)
            self.request_stop("another host stops")
        return True

    # ---- the parts of the loop --------------------------------------------------------------

    @contextlib.contextmanager
    def _running(self, target: int) -> Iterator[None]:
        self._stop_reason = self._stop_signal = None
        if self.step <= target:
            self._rewind()
        with contextlib.ExitStack() as at_the_end:
            for action in self._actions:
                at_the_end.callback(action.end)
                action.begin()
            at_the_end.callback(self.progress.stop)
            self.progress.start(self.step, target)
            with contextlib.suppress(_LeaveEvaluation):
                yield
            self._finish()

    def _finish(self) -> None:
        """Sees the last checkpoint onto the disk, and tells why training ends before its time."""
        self.save_checkpoint()
        if self.checkpoint_manager is not None:
            self.checkpoint_manager.wait()
        if self._stop_signal is not None:
            stop = Preempted(self._stop_signal, self.step, self.latest_checkpoint)
            self._stop_signal = None  # it is answered
            self.progress.say(str(stop))
            raise stop
        if self._stop_reason is not None:
            logging.info("Stopped at step %d: %s", self.step, self._stop_reason)
            self.progress.say(f"Stopped at step {self.step}: {self._stop_reason}")

    def _goes_on(self, target: int) -> bool:
        return self.step < target and not self._is_stopping()

    def _next_stop(self, target: int, eval_interval: Optional[int]) -> tuple[int, bool]:
        """Where the loop ends that begins now, and whether it begins now indeed.

        Multiples of each interval, counted from step 0: so a restart finds the same loops. At any
        other step a former run has stopped amid a loop, which goes on with its metrics.
        """
        step = self.step
        per_loop = self.steps_per_loop
        if callable(per_loop):
            per_loop = per_loop(step)
        intervals = (per_loop, self.summary_interval, self.checkpoint_interval, eval_interval)
        known = [every for every in intervals if every]
        stop = min([target, *(step - step % every + every for every in known)])
        return stop, not known or any(step % every == 0 for every in known)

    def _train_loop(self, stop: int, first: bool) -> Logs:
        """Trains up to step `stop`, or less far when the run is to stop; returns the logs."""
        while True:
            steps = self._pace.part(stop - self.step)
            last = self.step + steps >= stop
            logs = self._train_part(steps, first, last)
            if last:
                return logs
            self.progress.advance(self.step)
            if self._is_stopping():
                return self._train_part(0, False, True) if self._pace.can_split else logs
            first = False

    def _train_part(self, steps: int, first: bool, last: bool) -> Logs:
        start = time.monotonic()
        with self._scope():
            if self._pace.can_split:
                logs = self._train_runner.train_part(steps, first=first, last=last)
            else:
                logs = self._train_runner.train(steps)
        self._pace.learn(steps, time.monotonic() - start)
        return logs or {}

    def _summarise(self, logs: Logs) -> None:
        timing = self._train_runner.timing
        interval = self.summary_interval or self.steps_per_loop
        is_due = callable(interval) or self._is_at(interval)
        self.progress.trained(self.step, logs, timing, is_due)
        if is_due:
            self.summary_manager.write_summaries({**logs, **_rates(timing)})
            self.summary_manager.flush()
            if self.history is not None:
                self.history.record(self.step, TRAIN, logs)
        if timing is not None:
            timing.reset()

    def _checkpoint_if_due(self, target: int) -> None:
        if self.step >= target or (
            self.checkpoint_interval and self._is_at(self.checkpoint_interval)
        ):
            self.save_checkpoint()

    def _evaluation_is_due(self, target: int, interval: Optional[int]) -> bool:
        is_place = self.step >= target or (interval and self._is_at(interval))
        if not self._evaluates or not is_place or self.step == 0 or self._is_stopping():
            return False
        # Hosts that write no history do not know of evaluations before a restart.
        return not self._any_host(self.step in self._evaluated)

    def _evaluate(self, steps: Optional[int]) -> dict[str, Any]:
        step, start = self.step, time.monotonic()
        self.progress.evaluating(step)
        with self._scope():
            logs = dict(self._eval_runner.evaluate(-1 if steps is None else steps) or {})
        self.progress.evaluated(step, logs, time.monotonic() - start)
        self._act(self._eval_actions, logs)
        if self.history is None or not self.history.has(step, VALIDATION, logs):
            self.eval_summary_manager.write_summaries(logs)
            self.eval_summary_manager.flush()
        # On record last of all: a run that is killed before evaluates again, actions included.
        if self.history is not None:
            self.history.record(step, VALIDATION, logs)
        self._evaluated.add(step)
        return logs

    def _leave_evaluation_at_signal(self) -> None:
        # Not by an error out of the signal's handler, which might hit anything and be swallowed;
        # and not when other hosts would wait for this one.
        if self._stop_signal is not None and self._is_alone:
            raise _LeaveEvaluation

    def _act(self, actions: list[Action], logs: Logs) -> None:
        for action in actions:
            action(logs)

    def _rewind(self) -> None:
        """Drops all that was written past the present step, as it is going to be written again."""
        step = self.step
        if self.history is not None:
            self.history.rewind(step)
            self._evaluated = self.history.steps(VALIDATION)
        self._evaluated = {at for at in self._evaluated if at <= step}
        self.summary_manager.rewind(step)
        # Who does not evaluate leaves those summaries to the process that does. An evaluation that
        # is not on record is made again.
        if self._evaluates and self.eval_summary_manager is not self.summary_manager:
            self.eval_summary_manager.rewind(step if step in self._evaluated else step - 1)
        for action in self._actions:
            action.rewind(step)

    def _new_checkpoints(
        self, timeout: Optional[float], timeout_fn: Optional[Callable[[], bool]]
    ) -> Iterator[str]:
        seen, since = None, time.monotonic()
        while True:
            newest = self.latest_checkpoint
            if newest is not None and newest != seen:
                yield newest
                seen, since = newest, time.monotonic()
            elif time.monotonic() - since > (math.inf if timeout is None else timeout):
                if timeout_fn is None or timeout_fn():
                    return
                since = time.monotonic()
            else:
                time.sleep(_POLL_SECONDS)

    def _is_at(self, interval: Optional[int]) -> bool:
        return not interval or self.step % interval == 0

    def _scope(self) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext() if self.strategy is None else self.strategy.scope()

    @property
    def _actions(self) -> list[Action]:
        return self._train_actions + self._eval_actions


def _rates(timing: Any) -> dict[str, float]:
    """How fast training was, for the summaries; nothing without a timing."""
    if timing is None or not timing.seconds:
        return {}
    return {
        "examples_per_second": timing.examples / timing.seconds,
        "data_wait_share": timing.data_wait_seconds / timing.seconds,
    }
