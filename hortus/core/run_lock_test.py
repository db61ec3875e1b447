import json
import logging
import os
import signal
import subprocess
import sys
import time

import pytest

from hortus.core import run_lock
from hortus.core.run_lock import RunLock, RunLockedError

# Quick ones for the tests; waiting for another machine takes no longer than SILENCE.
BEAT, SILENCE = 0.05, 0.5
HOLD = (
    "import sys, time\n"
    "from hortus.core.run_lock import RunLock\n"
    "with RunLock(sys.argv[1], beat=0.05):\n"
    "    print('held', flush=True)\n"
    "    time.sleep(60)\n"
)


@pytest.fixture
def child(tmp_path):
    """Starts a process that holds the lock; it is gone after the test."""
    started = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def as_foreign(path, **changes):
    """Makes a lock look like that of another machine."""
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "machine": "elsewhere", "host": "far", **changes}))


def test_one_at_a_time(tmp_path):
    folder = tmp_path / "new" / "run"
    with RunLock(folder):
        content = json.loads((folder / "run.lock").read_text())
        assert (content["pid"], os.listdir(folder)) == (os.getpid(), ["run.lock"])
        assert run_lock.holder_of(folder) == f"this process ({os.getpid()})"
        with pytest.raises(RunLockedError, match=r"is being written to: this process .* since 20"):
            RunLock(folder).acquire()
        assert os.listdir(folder) == ["run.lock"]
    # Where nothing was written, nothing stays behind.
    assert os.listdir(tmp_path) == []
    assert run_lock.holder_of(folder) is None


def test_what_was_written_stays(tmp_path):
    with RunLock(tmp_path / "run"):
        (tmp_path / "run" / "params.yaml").write_text("")
    assert os.listdir(tmp_path / "run") == ["params.yaml"]
    with RunLock(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path / "run") == ["params.yaml"]


def test_another_process_is_refused_until_the_first_is_killed(child, tmp_path, caplog):
    first = child()
    with pytest.raises(RunLockedError) as error:
        RunLock(tmp_path).acquire()
    for text in (f"process {first.pid} on this machine", "train in another", "run.lock"):
        assert text in str(error.value)
    first.send_signal(signal.SIGKILL)
    first.wait()
    with caplog.at_level(logging.WARNING, "absl"), RunLock(tmp_path):
        assert json.loads((tmp_path / "run.lock").read_text())["pid"] == os.getpid()
    assert f"process {first.pid} on this machine is gone. Its lock is taken over" in caplog.text
    assert os.listdir(tmp_path) == []


def test_a_dead_process_that_nobody_waited_for_holds_nothing(child, tmp_path):
    first = child()
    os.kill(first.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while run_lock._start_of(first.pid) != "ended":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with RunLock(tmp_path):
        assert json.loads((tmp_path / "run.lock").read_text())["pid"] == os.getpid()


def test_a_later_process_with_the_same_number_holds_nothing(tmp_path):
    (tmp_path / "run.lock").write_text(
        json.dumps({**run_lock._myself(), "token": "old", "process": "1"})
    )
    with RunLock(tmp_path):
        assert json.loads((tmp_path / "run.lock").read_text())["token"] != "old"


def test_a_living_process_on_another_machine_is_seen_by_its_signs(child, tmp_path):
    child()
    as_foreign(tmp_path / "run.lock")  # it goes on to renew the file's time
    start = time.monotonic()
    with pytest.raises(RunLockedError, match=r"process \d+ on far has trained in it since"):
        RunLock(tmp_path, beat=BEAT, silence=60).acquire()
    assert time.monotonic() - start < 30  # as soon as it has shown itself


@pytest.mark.parametrize("content", ["keep", "", "[]", "{", '{"pid": "x"}'])
def test_a_silent_one_is_taken_over(tmp_path, content, caplog):
    lock = tmp_path / "run.lock"
    lock.write_text(json.dumps({**run_lock._myself(), "token": "old"}))
    as_foreign(lock)
    if content != "keep":
        lock.write_text(content)
    start = time.monotonic()
    with (
        caplog.at_level(logging.WARNING, "absl"),
        RunLock(tmp_path, beat=BEAT, silence=SILENCE),
    ):
        assert time.monotonic() - start >= SILENCE / 2
    assert "has given no sign of life for" in caplog.text


def test_a_lock_that_leads_nowhere_is_told(tmp_path):
    (tmp_path / "run.lock").symlink_to("nowhere")
    with pytest.raises(RunLockedError, match="a link that leads nowhere"):
        RunLock(tmp_path).acquire()
    assert os.listdir(tmp_path) == ["run.lock"]


def test_who_was_taken_for_dead_learns_of_it(tmp_path):
    first = RunLock(tmp_path, beat=BEAT)
    with first:
        first.check()
        (tmp_path / "run.lock").unlink()
        with RunLock(tmp_path, beat=BEAT) as second:
            deadline = time.monotonic() + 10
            while first._lost is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            with pytest.raises(RunLockedError, match="has gone on with the run"):
                first.check()
            first.release()
            second.check()
            assert (tmp_path / "run.lock").exists()  # the other one's stays


def test_many_at_once_give_one_holder(tmp_path):
    # All of them find the lock of a dead process and try to take it over.
    (tmp_path / "run.lock").write_text(
        json.dumps({**run_lock._myself(), "token": "old", "process": "1"})
    )
    code = (
        "import sys, time\n"
        "from hortus.core.run_lock import RunLock, RunLockedError\n"
        "sys.stdin.readline()\n"
        "lock = RunLock(sys.argv[1])\n"
        "try:\n"
        "    lock.acquire()\n"
        "except RunLockedError:\n"
        "    print('refused')\n"
        "else:\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.readline()\n"
    )
    several = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in several:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.stdout.readline() for process in several]
    for process in several:
        process.communicate("end\n")
    assert sorted(answers) == ["held\n", "refused\n", "refused\n", "refused\n"]
