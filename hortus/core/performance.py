"""Settings of a run that make it faster, or repeatable."""

from typing import Optional

import keras

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
