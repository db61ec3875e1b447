"""What has to be settled before a numerical library is loaded: which engine, which devices.

Nothing here imports one. `select` is called by the launcher; code that never calls it gets the
engine that KERAS_BACKEND or Keras' own configuration names.
"""

import os
import sys
from typing import Optional

ENGINES = ("tensorflow", "jax")


class EngineError(RuntimeError):
    """An engine cannot be had as asked; `str(error)` is for the user."""


def select(name: Optional[str] = None, virtual_cpu_devices: int = 0) -> str:
    """Settles the engine for this process and returns its name.

    Args:
        name: `tensorflow` or `jax`; None follows KERAS_BACKEND, and is `tensorflow` without it.
        virtual_cpu_devices: splits the CPU into so many devices; 0 leaves it whole.
    """
    wanted = name or os.environ.get("KERAS_BACKEND") or "tensorflow"
    if wanted not in ENGINES:
        raise EngineError(f"unknown engine {wanted!r}: expected {' or '.join(ENGINES)}")
    if "keras" in sys.modules:
        loaded = sys.modules["keras"].backend.backend()
        if loaded != wanted:
            raise EngineError(
                f"the engine {wanted} was asked for, but Keras is loaded with {loaded}: set "
                f"KERAS_BACKEND={wanted} in the environment, or select it before importing Keras"
            )
    os.environ["KERAS_BACKEND"] = wanted
    prepare()
    if virtual_cpu_devices > 1:
        _split_cpu(wanted, virtual_cpu_devices)
    return wanted


def prepare() -> None:
    """Sets what TensorFlow reads from the environment when it loads, unless the user has."""
    # Off by default on CPUs without AVX-512, where it makes convolutions much faster all the same.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def _split_cpu(engine: str, count: int) -> None:
    if engine == "jax":
        if "jax" not in sys.modules:
            flags = os.environ.get("XLA_FLAGS", "")
            if "xla_force_host_platform_device_count" not in flags:
                flag = f"--xla_force_host_platform_device_count={count}"
                os.environ["XLA_FLAGS"] = f"{flags} {flag}".strip()
        # The engine checks that it took effect, as JAX may have been loaded before.
    else:
        from hortus.engine.tensorflow import devices

        devices.split_cpu(count)
