"""The JAX engine: the same imperative step, run functionally under jit."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import keras
import numpy as np
from jax.experimental import multihost_utils

from hortus.engine import disk, keras_private
from hortus.engine.accumulation import GradientCollector, part
from hortus.engine.base import END_OF_TRAINING_DATA, Engine, Feed, Step, uneven
from hortus.engine.environment import EngineError
from hortus.engine.jax.strategy import JaxStrategy


def value_and_grad(
    fn: Callable[[], Any], variables: Sequence[Any], optimizer: Any | None = None
) -> tuple[Any, list[Any]]:
    """See `hortus.engine.value_and_grad`. Inside a step its updates go on to the step's scope."""
    outer = keras_private.stateless_scope()
    known = dict(keras_private.scope_values(outer)) if outer is not None else {}
    ours = {id(variable) for variable in variables}

    def pure(values: list[Any]) -> tuple[Any, tuple[Any, dict]]:
        with keras.StatelessScope() as scope:
            mapping = keras_private.scope_values(scope)
            mapping.update(known)
            mapping.update({id(v): x for v, x in zip(variables, values, strict=True)})
            result = fn()
            loss = result[0] if isinstance(result, tuple) else result
            scaled = keras.ops.cast(loss, "float32")
            if optimizer is not None:
                scaled = optimizer.scale_loss(scaled)
        updates = {
            key: value
            for key, value in mapping.items()
            if key not in ours and value is not known.get(key)
        }
        return scaled, (result, updates)

    values = [variable.value for variable in variables]
    grads, (result, updates) = jax.grad(pure, has_aux=True)(values)
    if outer is not None:
        keras_private.scope_values(outer).update(updates)
    return result, grads


class JaxEngine(Engine):
    """Data parallel over all devices of the strategy. TensorFlow only reads the data."""

    name = "jax"

    def __init__(self, strategy: JaxStrategy, eagerly: bool = False):
        super().__init__(strategy)
        from hortus.engine.tensorflow import devices

        devices.hide_accelerators()
        self._eagerly = eagerly
        self._ours: dict[int, Any] = {}
        """Arrays that this engine made and nobody else holds, by the id of their variable."""

    @property
    def num_replicas(self) -> int:
        return self.strategy.num_replicas_in_sync

    @property
    def num_programs(self) -> int:
        return 1

    @property
    def num_hosts(self) -> int:
        return len({device.process_index for device in self.strategy.devices})

    @property
    def host_index(self) -> int:
        return jax.process_index() if self.num_hosts > 1 else 0

    # ---- preparing --------------------------------------------------------------------------

    def prepare_optimizer(self, optimizer: Any, variables: list[Any]) -> None:
        optimizer.build(variables)
        optimizer.built = True  # Keras leaves it open on a wrapping optimizer

    def check_metric(self, metric: Any) -> None:
        for name, value in vars(metric).items():
            if type(value).__module__.startswith("tensorflow."):
                raise EngineError(
                    f"the metric {metric.name} keeps a {type(value).__name__} of TensorFlow in "
                    f"{name}, which JAX cannot update: make it with self.add_variable(...)"
                )

    def align(self, state: list[Any]) -> None:
        if self.num_hosts > 1:
            values = [np.array(variable.value) for variable in state]
            for variable, value in zip(
                state, multihost_utils.broadcast_one_to_all(values), strict=True
            ):
                variable.assign(np.asarray(value))

    def diverge_seeds(self, seed_states: list[Any]) -> None:
        """Nothing to do: a random tensor is drawn for the global batch."""

    # ---- running ----------------------------------------------------------------------------

    def feed(self, dataset: Any, is_training: bool, is_exact: bool = True) -> Feed:
        from hortus.engine.tensorflow.feed import DatasetFeed

        return DatasetFeed(dataset, is_exact)

    def is_out_of_memory(self, error: BaseException) -> bool:
        is_exhausted = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
        return is_exhausted and not disk.is_full(error)

    def train_loop(
        self, step: Step, state: list[Any], eagerly: bool = False
    ) -> Callable[[Feed, int], None]:
        compiled = self._compile(step, state, eagerly, donate=True)

        def run(feed: Any, num_steps: int) -> None:
            start = time.perf_counter()
            values = self._take(state)
            try:
                for _ in range(num_steps):
                    before = time.perf_counter()
                    batch = self._to_devices(_next_of(feed), is_global=False)
                    self.timing.data_wait_seconds += time.perf_counter() - before
                    values, _ = compiled(values, batch)
                jax.block_until_ready(values)
            finally:
                # A step that fails may have taken the arrays with it.
                if not any(value.is_deleted() for value in values):
                    self._give_back(state, values)
            self.timing.seconds += time.perf_counter() - start
            self.timing.steps += num_steps

        return run

    def single_step(self, step: Step, state: list[Any]) -> Callable[[Any], Any]:
        compiled = self._compile(step, state, donate=False)

        def run(batch: Any) -> Any:
            return self._run_once(compiled, state, self._to_devices(batch, is_global=False))

        return run

    def eval_step(
        self, step: Step, state: list[Any], eagerly: bool = False
    ) -> Callable[[Feed], Any]:
        compiled = self._compile(step, state, eagerly, donate=False)

        def run(feed: Any) -> Any:
            return self._run_once(compiled, state, self._to_devices(next(feed), is_global=True))

        return run

    def _run_once(self, compiled: Callable, state: list[Any], batch: Any) -> Any:
        changed, logs = compiled(self._take(state), batch)
        self._give_back([state[index] for index in changed], list(changed.values()))
        return self._to_numpy(logs)

    def _compile(
        self, step: Step, state: list[Any], eagerly: bool = False, donate: bool = False
    ) -> Callable:
        """A function of the values of `state` and a batch; returns new values, and logs.

        The new values are a list of all if the old ones are donated, which costs no copies, and
        otherwise those that changed, by their place in `state`.
        """
        known = {id(variable) for variable in state}

        def pure(values: list[Any], batch: Any) -> tuple[Any, Any]:
            with keras.StatelessScope(state_mapping=list(zip(state, values, strict=True))) as scope:
                logs = step(iter([batch]))
            mapping = keras_private.scope_values(scope)
            if set(mapping) - known:
                raise EngineError(
                    "a step updated a variable that is none of the model's, the optimizer's, the "
                    "metrics' or the task's: make it an attribute of the task, or give a random "
                    "operation its own keras.random.SeedGenerator"
                )
            new = [mapping[id(variable)] for variable in state]
            if donate:
                return new, logs
            pairs = enumerate(zip(values, new, strict=True))
            return {index: value for index, (old, value) in pairs if value is not old}, logs

        if self._eagerly or eagerly:

            def uncompiled(values: list[Any], batch: Any) -> tuple[Any, Any]:
                with jax.disable_jit():
                    return pure(values, batch)

            return uncompiled
        return jax.jit(
            pure,
            donate_argnums=0 if donate else (),
            out_shardings=(self.strategy.replicated, None),
        )

    def accumulate(
        self, step: Callable[[Any, Any], Any], batch: Any, optimizer: Any, count: int
    ) -> Any:
        if count == 1:
            return step(batch, optimizer)
        collector = GradientCollector(optimizer)
        logs = step(part(batch, 0, count), collector)
        grads, variables = collector.take()
        outer = keras_private.scope_values(keras_private.stateless_scope())
        keys = list(outer)

        def body(carry: Any, index: Any) -> Any:
            values, total, sums = carry
            with keras.StatelessScope() as scope:
                mapping = keras_private.scope_values(scope)
                mapping.update(zip(keys, values, strict=True))
                again = step(part(batch, index, count), collector)
            more, _ = collector.take()
            new = (
                [mapping[key] for key in keys],
                [a + b for a, b in zip(total, more, strict=True)],
                jax.tree.map(_add_floats, sums, again),
            )
            return jax.tree.map(_as_type_of, carry, new), None

        start = jax.tree.map(jax.numpy.asarray, ([outer[key] for key in keys], grads, logs))
        (values, grads, logs), _ = jax.lax.scan(body, start, jax.numpy.arange(1, count))
        outer.update(zip(keys, values, strict=True))
        optimizer.apply_gradients(
            [(grad / count, variable) for grad, variable in zip(grads, variables, strict=True)]
        )
        return jax.tree.map(lambda leaf: _mean_floats(leaf, count), logs)

    # ---- state ------------------------------------------------------------------------------

    def _take(self, state: list[Any]) -> list[Any]:
        """The variables' values, on all devices, as arrays that may be donated."""
        values = []
        for variable in state:
            value = variable.value
            if self._ours.get(id(variable)) is not value:
                # Set from outside: others may hold the array, and donating would take it from them.
                value = self._replicate(np.array(value))
            elif self.num_hosts > 1:
                value = self._replicate(np.asarray(value))
            values.append(value)
        return values

    def _give_back(self, state: list[Any], values: list[Any]) -> None:
        for variable, value in zip(state, values, strict=True):
            if self.num_hosts > 1:
                value = value.addressable_data(0)
            variable.assign(value)
            self._ours[id(variable)] = variable.value

    def _replicate(self, value: np.ndarray) -> Any:
        return jax.make_array_from_callback(
            value.shape, self.strategy.replicated, lambda index: value[index]
        )

    # ---- data -------------------------------------------------------------------------------

    def _to_devices(self, batch: Any, is_global: bool) -> Any:
        """A host's batch, or a global one that each host holds, on the devices."""
        return keras.tree.map_structure(lambda leaf: self._place(_as_array(leaf), is_global), batch)

    def _place(self, array: np.ndarray, is_global: bool) -> Any:
        if array.dtype.kind in "OSU":
            raise EngineError(
                "a batch holds text, which JAX cannot hold: drop it in the parser, or turn it into "
                "numbers"
            )
        if self.num_replicas == 1:
            return array  # a compiled function takes it over faster than `device_put` does
        per_host = self.num_replicas // self.num_hosts
        if array.ndim == 0:
            return self._replicate(array)
        if not is_global:
            if len(array) % per_host:
                raise EngineError(uneven(len(array), per_host))
            if self.num_hosts == 1:
                return jax.device_put(array, self.strategy.batched)
            return jax.make_array_from_process_local_data(self.strategy.batched, array)
        if len(array) % self.num_replicas:
            return self._replicate(array)  # the odd batch at the end: whole, on every device
        if self.num_hosts == 1:
            return jax.device_put(array, self.strategy.batched)
        return jax.make_array_from_callback(
            array.shape, self.strategy.batched, lambda index: array[index]
        )

    def merge_replicas(self, logs: Any) -> Any:
        return logs

    def _to_numpy(self, logs: Any) -> Any:
        def convert(leaf: Any) -> Any:
            if not isinstance(leaf, jax.Array):
                return np.asarray(leaf)
            if leaf.is_fully_addressable or leaf.is_fully_replicated:
                return np.asarray(leaf)
            return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))

        return keras.tree.map_structure(convert, logs)

    def next_batch(self, feed: Any) -> Any:
        return keras.tree.map_structure(_as_array, next(feed))

    def barrier(self, name: str) -> None:
        if self.num_hosts > 1:
            multihost_utils.sync_global_devices(name)

    def any_host(self, flag: bool) -> bool:
        if self.num_hosts == 1:
            return flag
        return bool(multihost_utils.process_allgather(np.array(flag)).any())


def _as_type_of(old: Any, value: Any) -> Any:
    return jax.numpy.asarray(value, old.dtype)  # a log may be a plain number


def _add_floats(total: Any, value: Any) -> Any:
    return total + value if jax.numpy.issubdtype(total.dtype, jax.numpy.floating) else value


def _mean_floats(total: Any, count: int) -> Any:
    return total / count if jax.numpy.issubdtype(total.dtype, jax.numpy.floating) else total


def _next_of(feed: Any) -> Any:
    try:
        return next(feed)
    except StopIteration:
        raise EngineError(END_OF_TRAINING_DATA) from None


def _as_array(leaf: Any) -> np.ndarray:
    return leaf.numpy() if hasattr(leaf, "numpy") else np.asarray(leaf)
