"""Kills at any moment: each run goes on, and ends as if nothing had happened."""

import contextlib
import glob
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from hortus.testing.engines import child_environment

CHILD = pathlib.Path(__file__).with_name("training_resume_child.py")
STEPS = 40
# As many as fit into the tests; training_resume_child.py does more on demand.
KILLS = 6

pytestmark = pytest.mark.slow


class Runs:
    """Starts runs in one folder each, and kills them."""

    def __init__(self, engine: str):
        self.process = subprocess.Popen(
            [sys.executable, str(CHILD), "--engine", engine],
            env=child_environment(engine),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._answer() == "ready"

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def start(self, folder, steps: int = STEPS, command: str = "run") -> int:
        self.process.stdin.write(f"{command} {folder} {steps}\n")
        self.process.stdin.flush()
        return int(self._answer().removeprefix("started "))

    def end(self) -> int:
        return int(self._answer().removeprefix("ended "))

    def run(self, folder, steps: int = STEPS) -> None:
        self.start(folder, steps)
        assert self.end() == 0

    def _answer(self) -> str:
        line = self.process.stdout.readline().strip()
        assert line, "the process that starts runs has ended"
        return line


@contextlib.contextmanager
def runs_of(engine: str):
    runs = Runs(engine)
    try:
        yield runs
    finally:
        runs.close()


def history(folder) -> list[dict]:
    """The lines of metrics.jsonl, without the time."""
    path = pathlib.Path(folder, "metrics.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [{k: v for k, v in line.items() if k != "wall_time"} for line in lines]


def outcome(folder) -> dict:
    """All that a run leaves behind that has to be the same: tensors bit for bit, and metrics."""
    folder = pathlib.Path(folder)
    found: dict = {"history": history(folder)}
    found["best"] = json.loads((folder / "best" / "info.json").read_text())
    names = [
        f"ckpt-{STEPS}",
        f"ema_checkpoints/ckpt-{STEPS}",
        f"best/{found['best']['best_ckpt_name']}",
    ]
    for name in names:
        files = sorted((folder / name).glob("*.safetensors"))
        assert files, f"no tensors in {name}"
        found[name] = [file.read_bytes() for file in files]
    return found


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(moment: str, pid: int, folder, longest: float, rng: random.Random) -> None:
    """Returns at a random moment, of the given kind, of a run; or when the run has ended."""
    if moment == "any":
        time.sleep(rng.uniform(0, longest))
        return
    lines = len(history(folder))
    while is_alive(pid):
        if moment == "write" and glob.glob(f"{folder}/.ckpt-*tmp@*"):
            time.sleep(rng.choice([0, 0, 0.001, 0.003]))
            return
        if moment == "line" and len(history(folder)) > lines:
            time.sleep(rng.uniform(0, 0.05))
            return
        time.sleep(0.0002)


def kill_and_compare(engine: str, folder, kills: int) -> None:
    """Kills runs in the same folder, then lets the last one end, and compares."""
    rng = random.Random(kills)
    done = {"any": 0, "write": 0, "line": 0}
    with runs_of(engine) as runs:
        start = time.monotonic()
        runs.run(f"{folder}/whole")
        longest = time.monotonic() - start
        killed = 0
        while killed < kills:
            moment = rng.choice(list(done))
            pid = runs.start(f"{folder}/killed")
            wait_for(moment, pid, f"{folder}/killed", longest, rng)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            code = runs.end()
            assert code in (-signal.SIGKILL, 0)
            if code == 0:  # it came to its end first: another one
                assert outcome(f"{folder}/killed") == outcome(f"{folder}/whole")
                os.rename(f"{folder}/killed", f"{folder}/ended_{killed}")
                continue
            killed += 1
            done[moment] += 1
        runs.run(f"{folder}/killed")
    expected, found = outcome(f"{folder}/whole"), outcome(f"{folder}/killed")
    assert found == expected
    assert [line["step"] for line in expected["history"] if line["split"] == "validation"] == list(
        range(8, STEPS + 1, 8)
    )
    print(f"{engine}: {killed} kills {done}, {time.monotonic() - start:.0f} s")


@pytest.mark.parametrize("engine", ["tensorflow", "jax"])
def test_kills_at_random_moments_change_nothing(engine, tmp_path):
    kill_and_compare(engine, tmp_path, KILLS)


@pytest.mark.parametrize("engine", ["tensorflow", "jax"])
def test_sigterm_writes_a_checkpoint_and_the_same_command_goes_on(engine, tmp_path):
    with runs_of(engine) as runs:
        runs.run(tmp_path / "whole")
        runs.start(tmp_path / "stopped", command="stop")
        assert runs.end() == 75
        assert os.path.isdir(tmp_path / "stopped" / "ckpt-1")  # amid a loop of four steps
        pid = runs.start(tmp_path / "stopped")
        wait_for("line", pid, tmp_path / "stopped", 0, random.Random(1))
        start = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        assert runs.end() == 75
        assert time.monotonic() - start < 30
        runs.run(tmp_path / "stopped")
        assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")
        # More steps than the run was made for: it goes on, and its past stays.
        runs.run(tmp_path / "stopped", STEPS + 4)
    longer = history(tmp_path / "stopped")
    assert longer[: len(history(tmp_path / "whole"))] == history(tmp_path / "whole")
    assert longer[-1]["step"] == STEPS + 4
