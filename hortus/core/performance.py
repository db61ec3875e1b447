"""Settings of a run that make it faster, or repeatable."""

from typing import Optional

import keras

from hortus import engine
from hortus.core import config_definitions as cfg
from hortus.engine import kernels

_POLICIES = {
    None: "float32",
    "float32": "float32",
    "float16": "mixed_float16",
    "mixed_float16": "mixed_float16",
    "bfloat16": "mixed_bfloat16",
    "mixed_bfloat16": "mixed_bfloat16",
}


def set_mixed_precision_policy(dtype: Optional[str]) -> None:
    """Computes in `float16`, `bfloat16` or `float32`; variables stay in float32."""
    if dtype not in _POLICIES:
        known = ", ".join(name for name in _POLICIES if name)
        raise ValueError(f"unknown mixed precision type {dtype!r}; expected one of {known}")
    keras.config.set_dtype_policy(_POLICIES[dtype])


def set_fast_kernels(allow: bool) -> None:
    """Allows training to compute in faster ways, which round differently; it may at first.

    `hortus.engine.kernels.FAST_KERNELS.governs` lists what this concerns.
    """
    kernels.FAST_KERNELS.allow(allow)


def set_seed_and_determinism(runtime_config: cfg.RuntimeConfig) -> Optional[int]:
    """Seeds Python, NumPy and the engine, and makes operations repeatable if the run asks for it.

    Call it before anything is built. Returns the seed, or None for a run with a new one each time.
    """
    seed = runtime_config.seed
    if seed is None and runtime_config.deterministic:
        seed = 0
    if seed is not None:
        keras.utils.set_random_seed(seed)
    if runtime_config.deterministic:
        engine.make_deterministic()
    return seed
