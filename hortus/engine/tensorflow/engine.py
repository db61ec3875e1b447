"""The TensorFlow engine: tf.function loops under a tf.distribute strategy."""

import contextlib
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from hortus.engine import disk, keras_private, kernels
from hortus.engine.accumulation import GradientCollector, part
from hortus.engine.base import END_OF_TRAINING_DATA, Engine, Feed, Step, batch_size, uneven
from hortus.engine.environment import EngineError
from hortus.engine.innermost import innermost
from hortus.engine.tensorflow import weight_decay
from hortus.engine.tensorflow.feed import DatasetFeed


def value_and_grad(
    fn: Callable[[], Any], variables: Sequence[Any], optimizer: Any | None = None
) -> tuple[Any, list[Any]]:
    """See `hortus.engine.value_and_grad`."""
    with weight_decay.deferred() as penalties, kernels.FAST_KERNELS.training_step():
        with tf.GradientTape() as tape:
            result = fn()
            loss = result[0] if isinstance(result, tuple) else result
            scaled = tf.cast(loss, tf.float32)
            replicas = tf.distribute.get_strategy().num_replicas_in_sync
            if replicas > 1:
                scaled /= replicas
            if optimizer is not None:
                scaled = optimizer.scale_loss(scaled)
        values = [v.value for v in variables]
        gradients = tape.gradient(scaled, values)
    return result, weight_decay.add(gradients, values, penalties)


class TensorFlowEngine(Engine):
    """Runs under any synchronous tf.distribute strategy."""

    name = "tensorflow"

    def __init__(
        self, strategy: tf.distribute.Strategy, eagerly: bool = False, enable_xla: bool = False
    ):
        super().__init__(strategy)
        self._eagerly = eagerly
        self._xla = enable_xla and not eagerly
        if self._xla and self.num_replicas > 1 and not tf.config.list_logical_devices("GPU"):
            warnings.warn(
                "runtime.enable_xla is left out: TensorFlow cannot compile a step for several CPU "
                "devices of one process",
                stacklevel=2,
            )
            self._xla = False
        self._count_hosts: Callable | None = None

    @property
    def num_replicas(self) -> int:
        return self.strategy.num_replicas_in_sync

    @property
    def num_programs(self) -> int:
        return self.num_replicas

    @property
    def num_hosts(self) -> int:
        return max(1, self.num_replicas // self._num_local)

    @property
    def _num_local(self) -> int:
        # The default strategy, that of no distribution, does not tell its devices.
        return 1 if self.num_replicas == 1 else len(self.strategy.extended.worker_devices)

    @property
    def host_index(self) -> int:
        resolver = self.strategy.cluster_resolver
        if resolver is None or self.num_hosts == 1:
            return 0
        chiefs = len(resolver.cluster_spec().as_dict().get("chief", ()))
        return int(resolver.task_id or 0) + (0 if resolver.task_type == "chief" else chiefs)

    # ---- preparing --------------------------------------------------------------------------

    def prepare_optimizer(self, optimizer: Any, variables: list[Any]) -> None:
        with self.strategy.scope():
            optimizer.build(variables)
        if self.num_replicas == 1 or getattr(optimizer.apply, "sums_over_replicas", False):
            return
        keras_private.leave_reduction_to_caller(innermost(optimizer))
        apply = optimizer.apply

        def reduce_and_apply(grads: Sequence[Any], trainable_variables: Any = None) -> None:
            apply(_sum_over_replicas(grads), trainable_variables)

        reduce_and_apply.sums_over_replicas = True  # type: ignore[attr-defined]
        optimizer.apply = reduce_and_apply

    @contextlib.contextmanager
    def metric_scope(self) -> Iterator[None]:
        automatic = tf.VariableSynchronization.AUTO, tf.VariableAggregation.NONE

        def create(next_creator: Callable, **kwargs: Any) -> Any:
            # A plain tf.Variable of a metric: each replica adds to its own, reading sums them up.
            if (kwargs.get("synchronization"), kwargs.get("aggregation")) == automatic:
                kwargs["synchronization"] = tf.VariableSynchronization.ON_READ
                kwargs["aggregation"] = tf.VariableAggregation.SUM
                kwargs["trainable"] = False
            return next_creator(**kwargs)

        with contextlib.ExitStack() as stack:
            if self.num_replicas > 1:
                stack.enter_context(tf.variable_creator_scope(create))
            yield

    def check_metric(self, metric: Any) -> None:
        """All metrics work here."""

    def align(self, state: list[Any]) -> None:
        """Nothing to do: TensorFlow's strategies make variables alike."""

    def diverge_seeds(self, seed_states: list[Any]) -> None:
        if self.num_replicas == 1 or not seed_states:
            return

        def shift() -> None:
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            for state in seed_states:
                offset = tf.cast(tf.stack([tf.cast(replica, tf.int64) * 7919, 0]), state.dtype)
                state.assign(state.value + offset)

        tf.function(self.strategy.run, autograph=False)(shift)

    # ---- running ----------------------------------------------------------------------------

    def feed(self, dataset: Any, is_training: bool, is_exact: bool = True) -> DatasetFeed:
        feed = DatasetFeed(dataset, is_exact)
        if is_training:
            self._check_batch_size(dataset)
        return feed

    def _check_batch_size(self, dataset: Any) -> None:
        for spec in tf.nest.flatten(getattr(dataset, "element_spec", ())):
            size = (
                spec.shape[0]
                if getattr(spec, "shape", None) is not None and spec.shape.rank
                else None
            )
            if size is not None and size % self._num_local:
                raise EngineError(uneven(size, self._num_local))
            return

    def _function(self, fn: Callable, eagerly: bool = False, **options: Any) -> Callable:
        # Without AutoGraph: it would rewrite every function that a step calls, which takes long,
        # and a step that needs it would not run on JAX.
        if self._eagerly or eagerly:
            return fn
        return tf.function(fn, autograph=False, **options)

    def with_xla(self, fn: Callable) -> Callable:
        return tf.function(fn, jit_compile=True, autograph=False) if self._xla else fn

    def is_out_of_memory(self, error: BaseException) -> bool:
        exhausted = (tf.errors.ResourceExhaustedError, MemoryError)
        return isinstance(error, exhausted) and not disk.is_full(error)

    def train_loop(
        self, step: Step, state: list[Any], eagerly: bool = False
    ) -> Callable[[Feed, int], None]:
        has_clock = _may_read_clock()
        drawn = [0]  # batches in one step, seen when it is traced

        def loop(iterator: Any, num_steps: tf.Tensor) -> tf.Tensor:
            batches = _ReplicaBatches(iterator, self, has_clock)

            def body(index: tf.Tensor, waited: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                batches.begin_step()
                step(batches)
                drawn[0] = batches.drawn
                return index + 1, tf.add_n([waited, *batches.waits])

            start = (tf.constant(0), tf.constant(0.0, tf.float64))
            # A step needs the weights that the one before it leaves: to keep several of them open
            # would only cost time. The dataset reads ahead by itself.
            _, waited = tf.while_loop(
                lambda index, _: index < num_steps, body, start, parallel_iterations=1
            )
            return waited

        compiled = self._function(loop, eagerly)
        known: tuple[Any, Callable] = (None, compiled)  # an iterator, and what runs with it

        def run(feed: Any, num_steps: int) -> None:
            nonlocal known
            start, steps = time.perf_counter(), tf.constant(num_steps)
            try:
                if feed.iterator is not known[0]:
                    known = feed.iterator, _traced(compiled, feed.iterator, steps)
                waited = known[1](feed.iterator, steps)
            except (tf.errors.OutOfRangeError, StopIteration):
                raise EngineError(END_OF_TRAINING_DATA) from None
            feed.taken += num_steps * drawn[0]
            self.timing.data_wait_seconds += float(waited)
            self.timing.seconds += time.perf_counter() - start
            self.timing.steps += num_steps

        return run

    def single_step(self, step: Step, state: list[Any]) -> Callable[[Any], Any]:
        def run(batch: Any) -> Any:
            return self.merge_replicas(step(iter([self._split(batch, is_even=True)])))

        compiled = self._function(run)

        def run_once(batch: Any) -> Any:
            return _to_numpy(compiled(tf.nest.map_structure(tf.convert_to_tensor, batch)))

        return run_once

    def eval_step(
        self, step: Step, state: list[Any], eagerly: bool = False
    ) -> Callable[[Feed], Any]:
        def run(first: Any, iterator: Any) -> Any:
            batches = iterator if first is None else itertools.chain([first.get_value()], iterator)
            return step(_ReplicaBatches(batches, self, is_even=False))

        # Batches differ in size at the end of the data: one trace serves all of them.
        compiled = self._function(run, eagerly, reduce_retracing=True)

        def run_once(feed: Any) -> Any:
            # Drawn before the step begins: at the end of the data, a step that draws its batch
            # would still run what does not depend on it, such as the count of a metric.
            first = None
            if isinstance(feed.iterator, tf.data.Iterator):
                first = feed.iterator.get_next_as_optional()
                if not first.has_value():
                    raise StopIteration
            try:
                return _to_numpy(compiled(first, feed.iterator))
            except (tf.errors.OutOfRangeError, StopIteration):
                raise StopIteration from None

        return run_once

    def skip_empty(self, fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
        if self.num_replicas == 1:
            return fn

        def run(inputs: Any) -> Any:
            size = batch_size(inputs)
            # Parts differ by one example at most: with two of them here, no replica has none.
            if size is None or (isinstance(size, int) and size > 1) or tf.executing_eagerly():
                return fn(inputs)
            logs: list[Any] = []

            def work() -> list[tf.Tensor]:
                logs.append(fn(inputs))
                leaves = [tf.convert_to_tensor(leaf) for leaf in tf.nest.flatten(logs[0])]
                return [leaf if leaf.shape.rank else tf.expand_dims(leaf, 0) for leaf in leaves]

            def rest() -> list[tf.Tensor]:
                return [_no_rows(leaf) for leaf in tf.nest.flatten(logs[0])]

            leaves = tf.cond(tf.convert_to_tensor(size) > 0, work, rest)
            return tf.nest.pack_sequence_as(logs[0], leaves)

        return run

    def merge_replicas(self, logs: Any) -> Any:
        if self.num_replicas == 1:
            return logs
        if self.num_hosts > 1:
            return tf.nest.map_structure(self._gather, logs)
        return tf.nest.map_structure(
            lambda value: _concat(self.strategy.experimental_local_results(value)), logs
        )

    def _gather(self, value: Any) -> Any:
        local = self.strategy.experimental_local_results(value)
        if local[0].shape.rank == 0:
            value = self.strategy.run(lambda x: tf.expand_dims(x, 0), args=(value,))
        return self.strategy.gather(value, axis=0)

    def next_batch(self, feed: Any) -> Any:
        return tf.nest.map_structure(lambda x: x.numpy(), next(feed))

    def accumulate(
        self, step: Callable[[Any, Any], Any], batch: Any, optimizer: Any, count: int
    ) -> Any:
        if count == 1:
            return step(batch, optimizer)
        collector = GradientCollector(optimizer)
        logs = step(part(batch, 0, count), collector)
        grads, variables = collector.take()
        leaves = [tf.convert_to_tensor(leaf) for leaf in tf.nest.flatten(logs)]

        def add(index: Any, grads: Any, leaves: Any) -> Any:
            again = tf.nest.flatten(step(part(batch, index, count), collector))
            more, _ = collector.take()
            return (
                index + 1,
                [total + grad for total, grad in zip(grads, more, strict=True)],
                [_add_floats(total, leaf) for total, leaf in zip(leaves, again, strict=True)],
            )

        # One part after the other: side by side they would need all the memory that they save.
        if self.num_replicas == 1:
            _, grads, leaves = tf.while_loop(
                lambda index, *_: index < count,
                add,
                (tf.constant(1), grads, leaves),
                parallel_iterations=1,
            )
        else:  # replicas cannot talk to each other inside a loop, as batch norm may want to
            for index in range(1, count):
                with tf.control_dependencies(grads):
                    _, grads, leaves = add(index, grads, leaves)
        optimizer.apply_gradients(
            [(grad / count, variable) for grad, variable in zip(grads, variables, strict=True)]
        )
        leaves = [leaf / count if leaf.dtype.is_floating else leaf for leaf in leaves]
        return tf.nest.pack_sequence_as(logs, leaves)

    # ---- replicas ---------------------------------------------------------------------------

    def _split(self, batch: Any, is_even: bool) -> Any:
        """One part of a host batch per local replica. Already distributed values pass through."""
        if self.num_replicas == 1:
            return batch
        if any(isinstance(leaf, tf.distribute.DistributedValues) for leaf in _leaves(batch)):
            return batch
        if is_even:
            count, first = self._num_local, 0
            _check_even(batch, count)
        else:  # every host holds the whole global batch, and takes its replicas' share
            count, first = self.num_replicas, self.host_index * self._num_local

        def part(index: int) -> Any:
            return tf.nest.map_structure(lambda leaf: _slice(leaf, index, count), batch)

        parts = [part(first + index) for index in range(self._num_local)]
        return self.strategy.experimental_distribute_values_from_function(
            lambda context: parts[context.replica_id_in_sync_group % self._num_local]
        )

    def barrier(self, name: str) -> None:
        self.any_host(False)

    def any_host(self, flag: bool) -> bool:
        if self.num_hosts == 1:
            return flag
        if self._count_hosts is None:  # compiled once: it is asked in each loop
            self._count_hosts = tf.function(self._sum_over_hosts, autograph=False)
        return int(self._count_hosts(tf.constant(int(flag)))) > 0

    def _sum_over_hosts(self, value: tf.Tensor) -> tf.Tensor:
        def add() -> tf.Tensor:
            # The copy is on the replica's device; an argument of a graph is on none.
            return tf.distribute.get_replica_context().all_reduce("SUM", tf.identity(value))

        return self.strategy.experimental_local_results(self.strategy.run(add))[0]


class _ReplicaBatches:
    """The iterator that a step draws from: host batches, cut for the replicas."""

    def __init__(
        self,
        iterator: Any,
        engine: TensorFlowEngine,
        has_clock: bool = False,
        is_even: bool = True,
    ):
        self._iterator, self._engine, self._has_clock = iterator, engine, has_clock
        self._is_even = is_even
        self.begin_step()

    def begin_step(self) -> None:
        """Forgets what the step before did."""
        self.drawn = 0
        self.waits: list[tf.Tensor] = []
        """Seconds, for each batch that was drawn in the step's own graph."""
        self._graph = tf.compat.v1.get_default_graph()

    def __iter__(self) -> "_ReplicaBatches":
        return self

    def __next__(self) -> Any:
        self.drawn += 1
        # A function inside of the step cannot hand a time to the loop around it.
        if not self._has_clock or tf.compat.v1.get_default_graph() is not self._graph:
            return self._engine._split(next(self._iterator), self._is_even)
        start = tf.timestamp()
        with tf.control_dependencies([start]):
            batch = next(self._iterator)
        with tf.control_dependencies([leaf for leaf in _leaves(batch) if tf.is_tensor(leaf)]):
            self.waits.append(tf.timestamp() - start)
        return self._engine._split(batch, self._is_even)


def _traced(compiled: Any, iterator: Any, *args: tf.Tensor) -> Callable:
    """The function for such arguments, which need not be looked at any more in each call."""
    if isinstance(iterator, tf.data.Iterator) and hasattr(compiled, "get_concrete_function"):
        return compiled.get_concrete_function(iterator, *args)
    return compiled


def _may_read_clock() -> bool:
    try:
        tf.timestamp()
    except tf.errors.FailedPreconditionError:
        return False  # a deterministic run must not look at it
    return True


def _check_even(batch: Any, count: int) -> None:
    size = batch_size(batch)
    if size is not None and not isinstance(size, int):  # a known one was checked at the beginning
        tf.debugging.assert_equal(size % count, 0, uneven(f"that is no multiple of {count}", count))


def _no_rows(leaf: Any) -> tf.Tensor:
    """An empty tensor that can be put beside those of replicas that have examples."""
    leaf = tf.convert_to_tensor(leaf)
    rest = leaf.shape[1:] if leaf.shape.rank else ()
    return tf.zeros([0, *(size or 0 for size in rest)], leaf.dtype)


def _leaves(batch: Any) -> list[Any]:
    return tf.nest.flatten(batch)


def _slice(leaf: Any, index: int, count: int) -> Any:
    """Part `index` of `count`, sizes as equal as they can be; a scalar is for everybody."""
    if leaf.shape.rank == 0:
        return leaf
    size = tf.shape(leaf)[0] if leaf.shape[0] is None else leaf.shape[0]
    start, end = index * size // count, (index + 1) * size // count
    return leaf[start:end]


def _concat(values: Sequence[Any]) -> Any:
    values = [tf.convert_to_tensor(value) for value in values]
    return tf.stack(values) if values[0].shape.rank == 0 else tf.concat(values, axis=0)


def _sum_over_replicas(grads: Sequence[Any]) -> list[Any]:
    present = [tf.convert_to_tensor(grad) for grad in grads if grad is not None]
    context = tf.distribute.get_replica_context()
    summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, present) if present else ())
    return [None if grad is None else next(summed) for grad in grads]


def _add_floats(total: Any, value: Any) -> Any:
    return total + value if total.dtype.is_floating else value


def _to_numpy(logs: Any) -> Any:
    def convert(leaf: Any) -> Any:
        return leaf.numpy() if tf.is_tensor(leaf) else np.asarray(leaf)

    return keras.tree.map_structure(convert, logs)
