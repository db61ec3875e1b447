"""Facts about the machine and what is installed on it, without loading any of it."""

import importlib.metadata
import os
import platform
from typing import Any, Optional

PACKAGES = (
    "hortus",
    "keras",
    "tensorflow",
    "jax",
    "numpy",
    "faster-coco-eval",
    "safetensors",
    "tensorboard",
)
"""Those whose version can explain a difference between two runs."""
_BUILDS = {"tensorflow": ("tensorflow-cpu", "tensorflow-intel", "tensorflow-macos")}
"""Other names under which a package is installed."""


def version(package: str) -> Optional[str]:
    """The installed version of a package, or None."""
    for name in (package, *_BUILDS.get(package, ())):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def facts() -> dict[str, Any]:
    """Python, system, processor, memory and package versions, ready for JSON."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": processor(),
        "cpus": usable_cpus(),
        "memory_gib": memory_gib(),
        "packages": {name: found for name in PACKAGES if (found := version(name))},
    }


def usable_cpus() -> int:
    """CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_gib() -> Optional[float]:
    """Memory of the machine in GiB, or None where the system does not tell."""
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return round(pages * size / 2**30, 1)


def processor() -> str:
    """What the processor calls itself."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
