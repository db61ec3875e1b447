"""tf.distribute strategies by name."""

import json
import os

import tensorflow as tf

from hortus.engine.environment import EngineError
from hortus.engine.tensorflow import devices


def current_strategy() -> tf.distribute.Strategy:
    """The strategy whose scope is open, or TensorFlow's default."""
    return tf.distribute.get_strategy()


def make_strategy(
    kind: str,
    num_gpus: int = 0,
    all_reduce_alg: str | None = None,
    num_packs: int = 1,
    worker_hosts: str | None = None,
    task_index: int = -1,
) -> tf.distribute.Strategy:
    """The strategy called `kind`: `off`, `one_device`, `mirrored` or `multi_worker_mirrored`."""
    if kind == "off":
        return tf.distribute.get_strategy()
    if kind == "multi_worker_mirrored":
        return _multi_worker(all_reduce_alg, worker_hosts, task_index)
    names = devices.local_devices(num_gpus)
    if kind == "one_device" or len(names) == 1:
        # One device needs no mirrored variables; a step is faster without them.
        return tf.distribute.OneDeviceStrategy(names[0])
    return tf.distribute.MirroredStrategy(names, _cross_device_ops(all_reduce_alg, num_packs))


def _cross_device_ops(algorithm: str | None, num_packs: int) -> tf.distribute.CrossDeviceOps | None:
    known = {
        "nccl": tf.distribute.NcclAllReduce,
        "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce,
    }
    if algorithm is None:
        return None
    if algorithm not in known:
        raise EngineError(
            f"all_reduce_alg {algorithm!r} is not for one host; expected {' or '.join(known)}"
        )
    return known[algorithm](num_packs=num_packs)


def _multi_worker(
    algorithm: str | None, worker_hosts: str | None, task_index: int
) -> tf.distribute.Strategy:
    if worker_hosts:
        hosts = [host.strip() for host in worker_hosts.split(",")]
        if not 0 <= task_index < len(hosts):
            raise EngineError(
                f"runtime.task_index is {task_index}, but there are {len(hosts)} worker_hosts: "
                f"each host needs its own number from 0 to {len(hosts) - 1}"
            )
        cluster = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": task_index}}
        os.environ["TF_CONFIG"] = json.dumps(cluster)
    if not os.environ.get("TF_CONFIG"):
        raise EngineError(
            "multi_worker_mirrored needs to know the hosts: set runtime.worker_hosts="
            "'host1:port,host2:port' and runtime.task_index, or the variable TF_CONFIG"
        )
    implementations = tf.distribute.experimental.CommunicationImplementation
    known = {None: implementations.AUTO, "ring": implementations.RING, "nccl": implementations.NCCL}
    if algorithm not in known:
        raise EngineError(f"all_reduce_alg {algorithm!r} is not for several hosts; ring or nccl")
    options = tf.distribute.experimental.CommunicationOptions(implementation=known[algorithm])
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
