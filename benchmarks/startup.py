"""Time of the config commands, from the shell's point of view.

    python benchmarks/startup.py [--repeats 9]

Each command runs in a process of its own; medians of wall and processor time, in seconds. With the
variable HORTUS_PEER_PYTHON, a Python that has tf-models-official, its way to list experiments is
measured in the same run.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

COMMANDS = (
    "--help",
    "list experiments",
    "list backbones",
    "list tasks",
    "describe resnet_imagenet",
    "describe retinanet_resnetfpn_coco --origins",
    "describe retinanet_resnetfpn_coco --diff",
    "describe retinanet_resnetfpn_coco --format tree",
    "schema retinanet_resnetfpn_coco",
    "validate --experiment retinanet_resnetfpn_coco --params_override trainer.train_steps=1",
)
PEER = (
    "import official.vision.registry_imports; from official.core import exp_factory; "
    "print(*exp_factory._REGISTERED_CONFIGS)"
)


def measure(command: Sequence[str], repeats: int) -> tuple[float, float]:
    """Returns the medians of wall and processor time of a command, in seconds."""
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), _children_time()
        subprocess.run(command, check=True, capture_output=True)
        walls.append(time.perf_counter() - wall)
        cpus.append(_children_time() - cpu)
    return statistics.median(walls), statistics.median(cpus)


def _children_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    print(f"{'wall':>6} {'cpu':>6}  command")
    for command in COMMANDS:
        wall, cpu = measure([sys.executable, "-m", "hortus.cli.main", *command.split()], repeats)
        print(f"{wall:6.3f} {cpu:6.3f}  hortus {command}", flush=True)
    peer = os.environ.get("HORTUS_PEER_PYTHON")
    if peer:
        wall, cpu = measure([peer, "-c", PEER], min(repeats, 3))
        print(f"{wall:6.3f} {cpu:6.3f}  tf-models-official: list its experiments")


if __name__ == "__main__":
    main()
