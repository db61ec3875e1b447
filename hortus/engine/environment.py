"""What has to be settled before a numerical library is loaded: which engine, which devices.

Nothing here imports one. `select` is called by the launcher; code that never calls it gets the
engine that KERAS_BACKEND or Keras' own configuration names.
"""

import os
import sys

ENGINES = ("tensorflow", "jax")


class EngineError(RuntimeError):
    """An engine cannot be had as asked; `str(error)` is for the user."""


def select(name: str | None = None, virtual_cpu_devices: int = 0) -> str:
    """Settles the engine for this process and returns its name.

    Args:
        name: `tensorflow` or `jax`; None follows KERAS_BACKEND, and is `tensorflow` without it.
        virtual_cpu_devices: splits the CPU into so many devices; 0 leaves it whole.
    """
    variable = os.environ.get("KERAS_BACKEND")
    wanted = name or variable or "tensorflow"
    if wanted not in ENGINES:
        raise EngineError(f"unknown engine {wanted!r}: expected {' or '.join(ENGINES)}")
    if "keras" in sys.modules:
        loaded = sys.modules["keras"].backend.backend()
        if loaded != wanted:
            raise EngineError(
                f"the engine {wanted} was asked for, but Keras is loaded with {loaded}: set "
                f"KERAS_BACKEND={wanted} in the environment, or select it before importing Keras"
            )
    elif variable and variable != wanted:
        raise EngineError(
            f"the engine {wanted} was asked for, but the variable KERAS_BACKEND is {variable}: "
            f"set runtime.engine={variable}, or unset KERAS_BACKEND"
        )
    os.environ["KERAS_BACKEND"] = wanted
    if virtual_cpu_devices > 1:
        _split_cpu(wanted, virtual_cpu_devices)
    return wanted


def prepare() -> None:
    """Sets what TensorFlow reads from the environment when it loads, unless the user has.

    `import hortus` calls it.
    """
    # Off by default on CPUs without AVX-512, where it makes convolutions much faster all the same.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def make_xla_deterministic() -> None:
    """Has XLA choose only GPU kernels whose result does not depend on timing."""
    _add_xla_flag("xla_gpu_deterministic_ops", "true")


def _add_xla_flag(name: str, value: str) -> None:
    """Sets a flag that XLA reads when it finds the devices, unless the user has set it."""
    flags = os.environ.get("XLA_FLAGS", "")
    if name not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --{name}={value}".strip()


def _split_cpu(engine: str, count: int) -> None:
    if engine == "jax":
        # The engine checks that it took effect, as JAX may have found its devices before.
        _add_xla_flag("xla_force_host_platform_device_count", str(count))
    else:
        from hortus.engine.tensorflow import loading

        loading.load()
        from hortus.engine.tensorflow import devices

        devices.split_cpu(count)
