"""The strategy of a run, by its name in the config."""

from typing import Any, Optional

from hortus import engine
from hortus.engine import EngineError
from hortus.hyperparams import did_you_mean

_KINDS = ("off", "one_device", "mirrored", "multi_worker_mirrored", "parameter_server", "tpu")


def get_distribution_strategy(
    distribution_strategy: str = "mirrored",
    num_gpus: int = 0,
    all_reduce_alg: Optional[str] = None,
    num_packs: int = 1,
    tpu_address: Optional[str] = None,
    worker_hosts: Optional[str] = None,
    task_index: int = -1,
    virtual_cpu_devices: int = 0,
    dist_strategy: Optional[str] = None,
    **unused: Any,
) -> Any:
    """The strategy to build the model under and to run steps with: `with strategy.scope(): ...`.

    Args:
        distribution_strategy: `off`, `one_device`, `mirrored`, `multi_worker_mirrored` or `tpu`.
        num_gpus: GPUs of this host to use; -1 for all, 0 for the CPU.
        all_reduce_alg: how TensorFlow sums gradients; None lets it choose.
        num_packs: gradient packs per all-reduce on one host.
        tpu_address: TPUs are found by JAX itself; kept for existing launch scripts.
        worker_hosts: addresses of all hosts, with commas; None reads TF_CONFIG.
        task_index: place of this host among them.
        virtual_cpu_devices: parts of the CPU to use as devices; see `engine.select`.
        dist_strategy: another name of `distribution_strategy`.
        **unused: other arguments of existing launch scripts.
    """
    del tpu_address, unused
    kind = str(dist_strategy or distribution_strategy).lower()
    if kind not in _KINDS:
        raise EngineError(f"unknown strategy {kind!r}.{did_you_mean(kind, _KINDS)}")
    if kind == "parameter_server":
        raise EngineError(
            "parameter_server is not offered: its updates depend on who comes first. Use "
            "multi_worker_mirrored, which trains on several hosts in step"
        )
    engine.select(virtual_cpu_devices=virtual_cpu_devices)
    if engine.name() == "jax":
        from hortus.engine.jax.strategy import make_strategy

        return make_strategy(kind, num_gpus, worker_hosts, task_index, virtual_cpu_devices)
    if kind == "tpu":
        raise EngineError(
            "TPUs are driven by the JAX engine here: set runtime.engine=jax (KERAS_BACKEND=jax)"
        )
    from hortus.engine.tensorflow import strategy

    return strategy.make_strategy(
        kind, num_gpus, all_reduce_alg, num_packs, worker_hosts, task_index
    )
