"""What an engine does for the trainer; one subclass per backend. Tasks see `value_and_grad`."""

import abc
import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from hortus.engine.input_context import InputContext

Step = Callable[[Iterator], Any]
"""Takes batches from an iterator with `next` and does one step; may return logs."""

END_OF_TRAINING_DATA = (
    "the training data came to its end amid training: a training pipeline has to repeat itself "
    "without end, see `train_data.is_training`, and `overfit_batches` needs as many full batches"
)


def uneven(size: Any, count: int) -> str:
    """Tells that a training batch cannot be shared by the devices of a host."""
    return (
        f"a batch of {size} examples cannot be shared evenly by {count} devices: make "
        "train_data.global_batch_size a multiple of the number of all devices, and leave out what "
        "does not fill a batch (drop_remainder)"
    )


@dataclasses.dataclass
class Timing:
    """What a loop spent, since the last `reset`."""

    steps: int = 0
    seconds: float = 0.0
    data_wait_seconds: float = 0.0
    examples: int = 0

    def reset(self) -> None:
        self.steps, self.seconds, self.data_wait_seconds, self.examples = 0, 0.0, 0.0, 0


class Feed(abc.ABC):
    """Batches of a dataset, from a position that can be saved and restored.

    A checkpoint's manifest tells the position of the chief. All hosts have taken the same number of
    batches; what else belongs to a position is a host's own, and in its files.
    """

    @abc.abstractmethod
    def get_state(self) -> dict[str, Any]:
        """The position of this host; `batches` is the number of batches taken."""

    @abc.abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Goes to what hosts have in common of a position, unless it `stays`."""

    @abc.abstractmethod
    def save_files(self, folder: str) -> None:
        """Writes the position in the data to files in `folder`."""

    @abc.abstractmethod
    def load_files(self, folder: str) -> None:
        """Goes to the position that `save_files` wrote, unless it `stays`."""

    stays = False
    """Whether to stay where it is, in the next restores."""


class Engine(abc.ABC):
    """Runs steps: compiled, over all replicas, on one backend."""

    name: str

    def __init__(self, strategy: Any):
        self.strategy = strategy
        self.timing = Timing()

    # ---- where we are -----------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def num_replicas(self) -> int:
        """Devices that work on a step together, over all hosts."""

    @property
    @abc.abstractmethod
    def num_programs(self) -> int:
        """How often a step's code runs side by side, each time for a part of the batch."""

    @property
    @abc.abstractmethod
    def num_hosts(self) -> int: ...

    @property
    @abc.abstractmethod
    def host_index(self) -> int: ...

    @property
    def is_chief(self) -> bool:
        """Whether this host writes what all hosts share."""
        return self.host_index == 0

    def input_context(self, is_training: bool) -> InputContext:
        """What this host's pipeline reads: its share to train, everything to evaluate.

        In evaluation each host reads all of the data and works on its part of every batch. So all
        hosts see the same number of batches, and each example is counted once, whatever its number.
        """
        if not is_training:
            return InputContext()
        return InputContext(self.num_hosts, self.host_index)

    # ---- preparing --------------------------------------------------------------------------

    @abc.abstractmethod
    def prepare_optimizer(self, optimizer: Any, variables: list[Any]) -> None:
        """Builds the optimizer, and sees that it sums over replicas before it clips and applies."""

    def metric_scope(self) -> contextlib.AbstractContextManager:
        """Where metrics are made."""
        return contextlib.nullcontext()

    @abc.abstractmethod
    def check_metric(self, metric: Any) -> None:
        """Raises an `EngineError` for a metric that cannot work on this engine."""

    @abc.abstractmethod
    def align(self, state: list[Any]) -> None:
        """Gives the variables of all hosts the values that they have on the chief."""

    @abc.abstractmethod
    def diverge_seeds(self, seed_states: list[Any]) -> None:
        """Gives each replica its own random stream. Repeat it after a restore."""

    # ---- running ----------------------------------------------------------------------------

    @abc.abstractmethod
    def feed(self, dataset: Any, is_training: bool, is_exact: bool = True) -> Feed:
        """What reads a dataset of host batches.

        Args:
            dataset: the batches.
            is_training: whether they are for training.
            is_exact: whether to go on with the very same batches after a restore, even where they
                have to be read again from the first one on.
        """

    def repeat_first(self, dataset: Any, num_batches: int) -> Any:
        """The first batches of a dataset, again and again."""
        from hortus.engine.tensorflow import feed  # tf.data feeds both engines

        return feed.repeat_first(dataset, num_batches)

    def with_xla(self, fn: Callable) -> Callable:
        """`fn`, a replica's part of a step, compiled by XLA if the run asks for it."""
        return fn

    @abc.abstractmethod
    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether an error of a step says that a device's memory did not suffice."""

    @abc.abstractmethod
    def train_loop(
        self, step: Step, state: list[Any], eagerly: bool = False
    ) -> Callable[[Feed, int], None]:
        """Compiles `step` into a loop: `loop(feed, num_steps)`.

        Args:
            step: called once per step with an iterator of replica batches.
            state: all variables that a step reads or updates.
            eagerly: runs it uncompiled after all.
        """

    @abc.abstractmethod
    def single_step(self, step: Step, state: list[Any]) -> Callable[[Any], Any]:
        """Compiles `step` into `run(batch) -> logs`, for one host batch that is at hand."""

    @abc.abstractmethod
    def eval_step(
        self, step: Step, state: list[Any], eagerly: bool = False
    ) -> Callable[[Feed], Any]:
        """Compiles `step` into `run(feed) -> logs` as NumPy arrays; StopIteration at the end.

        Values of all replicas and hosts are put together: an array has all examples of the batch,
        in order. A scalar stays one where a single computation gives it, on one device or on JAX;
        otherwise it becomes an array with the value of each replica that had examples.
        """

    def skip_empty(self, fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`fn`, a replica's part of an evaluation step, left out on replicas without examples.

        At the end of the data there can be fewer examples than replicas, and a mean over none is
        not a number.
        """
        return fn

    @abc.abstractmethod
    def merge_replicas(self, logs: Any) -> Any:
        """Puts together what `strategy.run` returned, inside an evaluation step."""

    @abc.abstractmethod
    def accumulate(
        self, step: Callable[[Any, Any], Any], batch: Any, optimizer: Any, count: int
    ) -> Any:
        """Works off a replica's batch in `count` parts and applies the mean of their gradients.

        Args:
            step: `step(part, optimizer) -> logs`, calls `optimizer.apply_gradients` once.
            batch: the replica's batch.
            optimizer: what finally applies the gradients.
            count: parts, each an equal share of the examples.

        Returns:
            The logs: the mean over the parts where they are floats, else those of the last part.
        """

    @abc.abstractmethod
    def next_batch(self, feed: Feed) -> Any:
        """The next host batch as NumPy arrays; StopIteration at the end."""

    @abc.abstractmethod
    def barrier(self, name: str) -> None:
        """Waits for all hosts."""

    @abc.abstractmethod
    def any_host(self, flag: bool) -> bool:
        """Whether the flag is true on any host; all hosts have to ask."""


def batch_size(batch: Any) -> Any | None:
    """The number of examples: the length of the first part that has one."""
    import keras

    for leaf in keras.tree.flatten(batch):
        shape = getattr(leaf, "shape", ())
        if shape is not None and len(shape):
            return keras.ops.shape(leaf)[0]
    return None
