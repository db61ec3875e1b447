"""Two trainings in one folder, as a user may start them by mistake."""

import os
import signal
import subprocess
import sys
import time

import pytest

COMMAND = [
    *(sys.executable, "-m", "hortus.cli.main", "--import", "hortus.testing.tiny_task"),
    *("train", "-e", "tiny", "--mode", "train", "trainer.checkpoint_interval=4"),
]


def start(folder, steps):
    return subprocess.Popen(
        [*COMMAND, "-d", str(folder), f"trainer.train_steps={steps}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.slow
def test_a_second_training_is_refused_until_the_first_is_killed(tmp_path):
    first = start(tmp_path, 1_000_000)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "ckpt-8").exists():  # it trains
            assert time.monotonic() < deadline and first.poll() is None
            time.sleep(0.1)
        second = start(tmp_path, 12)
        output, _ = second.communicate(timeout=120)
        assert second.returncode == 2
        assert f"process {first.pid} on this machine has trained in it since" in output
        assert "Traceback" not in output
        assert first.poll() is None
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert (tmp_path / "run.lock").exists()
    newest = max(int(name[5:]) for name in os.listdir(tmp_path) if name[5:].isdigit())
    third = start(tmp_path, newest + 4)
    output, _ = third.communicate(timeout=120)
    assert third.returncode == 0, output
    assert f"process {first.pid} on this machine is gone. Its lock is taken over" in output
    assert (tmp_path / f"ckpt-{newest + 4}").is_dir()
    assert not (tmp_path / "run.lock").exists()
