"""Data parallelism on JAX, with the face of a tf.distribute strategy."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from hortus.engine.environment import EngineError

_open: list["JaxStrategy"] = []


class JaxStrategy:
    """Replicated variables, batches cut along their first axis, over all devices of all hosts.

    A step is one global computation: the mean over a batch is the mean over all replicas, and batch
    statistics are those of the global batch.
    """

    cluster_resolver = None

    def __init__(self, devices: list[Any] | None = None):
        self.devices = list(devices) if devices is not None else jax.devices()
        self.mesh = Mesh(np.array(self.devices), ("batch",))
        self.replicated = NamedSharding(self.mesh, PartitionSpec())
        self.batched = NamedSharding(self.mesh, PartitionSpec("batch"))

    @property
    def num_replicas_in_sync(self) -> int:
        return len(self.devices)

    @contextlib.contextmanager
    def scope(self) -> Iterator["JaxStrategy"]:
        """Makes this the current strategy."""
        _open.append(self)
        try:
            yield self
        finally:
            _open.pop()

    def run(
        self, fn: Callable, args: tuple = (), kwargs: dict | None = None, options: Any = None
    ) -> Any:
        """Calls `fn` once, on the global batch: JAX cuts the work itself."""
        return fn(*args, **(kwargs or {}))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The one global value."""
        return (value,)


def current_strategy() -> JaxStrategy:
    """The strategy whose scope is open, or one for the first device."""
    return _open[-1] if _open else JaxStrategy(jax.local_devices()[:1])


def make_strategy(
    kind: str,
    num_gpus: int = 0,
    worker_hosts: str | None = None,
    task_index: int = -1,
    virtual_cpu_devices: int = 0,
) -> JaxStrategy:
    """The strategy called `kind`; see `distribute_utils.get_distribution_strategy`."""
    if kind == "multi_worker_mirrored":
        join_hosts(worker_hosts, task_index)
        return JaxStrategy(jax.devices())
    if kind in ("off", "one_device"):
        return JaxStrategy(jax.local_devices()[:1])
    platform = jax.default_backend()
    if kind == "tpu" and platform != "tpu":
        raise EngineError(f"the strategy tpu was asked for, but JAX runs on {platform} here")
    devices = jax.local_devices()
    if virtual_cpu_devices > 1 and platform == "cpu" and len(devices) != virtual_cpu_devices:
        raise EngineError(
            f"runtime.virtual_cpu_devices is {virtual_cpu_devices}, but JAX was loaded before that "
            f"and sees {len(devices)}; set it in a fresh process"
        )
    if platform == "gpu" and num_gpus > 0:
        if num_gpus > len(devices):
            raise EngineError(f"runtime.num_gpus is {num_gpus}, JAX sees {len(devices)} GPUs here")
        devices = devices[:num_gpus]
    return JaxStrategy(devices)


def join_hosts(worker_hosts: str | None, task_index: int) -> None:
    """Joins the processes of a multi-host run; the first host coordinates. Once per process."""
    if jax.distributed.is_initialized():
        return
    if not worker_hosts:
        jax.distributed.initialize()  # a cluster that JAX knows how to ask: SLURM, Cloud TPU, ...
        return
    hosts = [host.strip() for host in worker_hosts.split(",")]
    if not 0 <= task_index < len(hosts):
        raise EngineError(
            f"runtime.task_index is {task_index}, but there are {len(hosts)} worker_hosts: "
            f"each host needs its own number from 0 to {len(hosts) - 1}"
        )
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(hosts[0], num_processes=len(hosts), process_id=task_index)
