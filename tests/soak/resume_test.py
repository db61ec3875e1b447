"""Interrupted runs go on, and end as if nothing had happened; the short form of `resume.py`."""

import contextlib
import glob
import os
import random
import signal
import time

import pytest
import resume
from resume import STEPS, Attempt, Interruption, Runs, history, outcome

# As many as fit into the tests; `resume.py` does more on demand.
RUNS = 2
KILLS = 4

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=resume.ENGINES)
def runs(request, tmp_path_factory):
    with Runs(request.param, tmp_path_factory.mktemp(request.param)) as runs:
        yield runs


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


def test_several_interruptions_within_a_pass_change_nothing(runs):
    for seed in range(1, RUNS + 1):
        attempt = Attempt.of(runs.engine, seed)
        count, differences = runs.attempt(attempt)
        assert not differences, attempt.command
        assert count >= 2


def test_two_interruptions_right_after_one_another(runs):
    """What went back by a whole pass before: six steps, two steps, and the rest of the pass."""
    stops = tuple(Interruption(step, "SIGTERM", 0.0) for step in (5, 7))
    assert runs.attempt(Attempt(runs.engine, 1000, "table", stops)) == (2, [])


def test_kills_at_random_moments_change_nothing(runs):
    rng, killed = random.Random(KILLS), 0
    start = time.monotonic()
    expected = runs.whole("records")
    longest = time.monotonic() - start
    while killed < KILLS:
        moment = rng.choice(["any", "write", "line"])
        pid = runs.start("killed", "records")
        wait_for(moment, pid, runs.folder / "killed", longest, rng)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        code = runs.end()
        assert code in (-signal.SIGKILL, 0)
        if code == 0:  # it came to its end first: another one
            assert outcome(runs.folder / "killed") == expected
            os.rename(runs.folder / "killed", runs.folder / f"ended_{killed}")
        killed += 1
    runs.run("killed", "records")
    assert outcome(runs.folder / "killed") == expected
    evaluated = [line["step"] for line in expected["history"] if line["split"] == "validation"]
    assert evaluated == [8, 16, 24, 28]


def test_sigterm_writes_a_checkpoint_and_the_same_command_goes_on(runs):
    expected, folder = runs.whole("table"), runs.folder / "stopped"
    runs.start("stopped", interruption=Interruption(0, "SIGTERM", 0.0))
    assert runs.end() == resume.STOPPED
    assert os.path.isdir(folder / "ckpt-1") or os.path.isdir(folder / "ckpt-2")
    pid = runs.start("stopped")
    wait_for("line", pid, folder, 0, random.Random(1))
    start = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    assert runs.end() == resume.STOPPED
    assert time.monotonic() - start < 30
    runs.run("stopped")
    assert outcome(folder) == expected
    # More steps than the run was made for: it goes on, and its past stays.
    runs.run("stopped", steps=STEPS + 4)
    longer, whole = history(folder), expected["history"]
    assert longer[: len(whole)] == whole
    assert longer[-1]["step"] == STEPS + 4


def test_a_difference_is_found(runs):
    """The comparison itself: a run of data in another order is not equal."""
    expected, other = runs.whole("table"), runs.whole("records")
    found = {part for part in expected if other.get(part) != expected[part]}
    assert found >= {"history", f"ckpt-{STEPS}", f"ema_checkpoints/ckpt-{STEPS}"}
