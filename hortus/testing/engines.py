"""Run tests or code under another engine: in a new process, since Keras is set at import."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Union

_CHILD = "HORTUS_ENGINE_CHILD"
_COMPILE_QUICKLY = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
"""Tests compile much and run it once: what XLA's optimizations take, they never give back."""


def child_environment(engine: str) -> dict[str, str]:
    """The environment of a process that is to run on `engine`, for a test."""
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "XLA_FLAGS": _COMPILE_QUICKLY}
    if engine == "jax":
        environment |= _compile_once()
    return {**environment, **os.environ, "KERAS_BACKEND": engine}


def _compile_once() -> dict[str, str]:
    """Settings of JAX that keep what it compiles, for other processes and for the next run.

    Without jit each operation is a program of its own, and compiling takes three quarters of the
    tests' time. JAX finds a program by its content, its own version and the kind of processor.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return {
        "JAX_COMPILATION_CACHE_DIR": os.path.join(home, "hortus", "tests", "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def run_under_engine(
    engine: str,
    target: Union[str, pathlib.Path, Sequence[pathlib.Path]],
    *,
    select: str = "",
    timeout: float = 300.0,
) -> str:
    """Runs `target` in a new process with Keras on `engine` and returns what it printed.

    A test file does this once, to have all its tests run on the second engine too:

        def test_on_jax():
            run_under_engine("jax", __file__)

    In the new process that test skips itself.

    Args:
        engine: "tensorflow" or "jax".
        target: path of a test file, or several, which pytest runs, or Python source.
        select: a pytest `-k` expression that limits which tests of the file are run.
        timeout: seconds after which the process is killed and the test fails.

    Raises:
        AssertionError: the process failed; the message holds its output.
    """
    if os.environ.get(_CHILD):
        import pytest

        pytest.skip(f"already runs under {os.environ[_CHILD]} in a process of its own")
    if isinstance(target, str) and not target.endswith(".py"):
        command = ["-c", target]
    else:
        paths = [target] if isinstance(target, (str, pathlib.Path)) else target
        command = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
        command += [*map(str, paths), *(["-k", select] if select else [])]
    done = subprocess.run(
        [sys.executable, *command],
        env=child_environment(engine) | {_CHILD: engine},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"failed under {engine} (exit {done.returncode}):\n{done.stdout}")
    return done.stdout
