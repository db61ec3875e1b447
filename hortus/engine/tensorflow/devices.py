"""The devices of this host as TensorFlow sees them."""

import tensorflow as tf

from hortus.engine.environment import EngineError


def split_cpu(count: int) -> None:
    """Splits the CPU into `count` logical devices; once per process, before the first operation."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    configured = tf.config.get_logical_device_configuration(cpu)
    if configured is not None and len(configured) == count:
        return
    try:
        parts = [tf.config.LogicalDeviceConfiguration()] * count
        tf.config.set_logical_device_configuration(cpu, parts)
    except RuntimeError:
        raise EngineError(
            f"the CPU cannot be split into {count} devices any more: TensorFlow has already been "
            "used in this process; set runtime.virtual_cpu_devices in a fresh one"
        ) from None


def local_devices(num_gpus: int) -> list[str]:
    """Names of the devices to train on: `num_gpus` GPUs (-1: all), or the CPU's parts."""
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    if num_gpus < 0:
        num_gpus = len(gpus)
    if num_gpus > len(gpus):
        raise EngineError(
            f"runtime.num_gpus is {num_gpus}, but TensorFlow sees {len(gpus)} GPUs here; "
            "a build without GPU support, as the extra `cpu` installs, sees none"
        )
    if num_gpus:
        return gpus[:num_gpus]
    return [device.name for device in tf.config.list_logical_devices("CPU")]


def make_deterministic() -> None:
    """Makes TensorFlow's operations and tf.data repeatable. Random operations need seeds then."""
    tf.config.experimental.enable_op_determinism()


def hide_accelerators() -> None:
    """Leaves GPUs and TPUs to JAX, where TensorFlow only reads the data."""
    for kind in ("GPU", "TPU"):
        try:
            tf.config.set_visible_devices([], kind)
        except (RuntimeError, ValueError):
            # In use already, by code that ran before; it can only have been this process' own.
            continue
