import io
import re
import types

import pytest

from hortus.core import progress as progress_lib
from hortus.core.progress import Progress


class Clock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress_lib, "time", clock)
    return clock


def timing(examples=0, seconds=0.0, wait=0.0):
    return types.SimpleNamespace(examples=examples, seconds=seconds, data_wait_seconds=wait)


def plain(**options):
    stream = io.StringIO()
    options = {"memory": lambda: 3 * 2**30, **options}
    return Progress(stream=stream, **options), stream


def test_a_plain_line_has_everything(clock):
    progress, stream = plain()
    progress.start(100, 500)
    clock.now += 10
    logs = {"training_loss": 0.53214, "learning_rate": 0.01, "accuracy": 0.9}
    progress.trained(200, logs, timing(examples=8000, seconds=10.0, wait=0.5))
    assert stream.getvalue() == (
        "train step=200/500 eta=0:00:30 examples_per_s=800 data_wait=5% loss=0.5321 "
        "learning_rate=0.01 memory=3.0GiB\n"
    )


def test_the_first_loop_does_not_count_for_the_time_left_once_there_is_a_second(clock):
    progress, stream = plain()
    progress.start(0, 400)
    clock.now += 100  # compiles
    progress.trained(100, {})
    clock.now += 10
    progress.trained(200, {})
    assert re.findall(r"eta=(\S+)", stream.getvalue()) == ["0:05:00", "0:00:20"]


def test_without_timing_or_memory_it_tells_steps_per_second(clock):
    progress, stream = plain(memory=lambda: None)
    progress.start(0, 10)
    clock.now += 2
    progress.trained(5, {"loss": float("nan")})
    assert stream.getvalue() == "train step=5/10 eta=0:00:02 steps_per_s=2.5 loss=nan\n"


def test_lines_come_when_due_or_after_some_time_or_at_the_end(clock):
    progress, stream = plain(line_seconds=60)
    progress.start(0, 40)
    for step, seconds, is_due in [(10, 1, False), (20, 61, False), (30, 1, True), (40, 1, False)]:
        clock.now += seconds
        progress.trained(step, {}, None, is_due)
    assert re.findall(r"step=(\d+)", stream.getvalue()) == ["20", "30", "40"]


def test_evaluations_have_a_line_of_their_own():
    progress, stream = plain()
    progress.evaluating(7)
    progress.evaluated(7, {"AP": 0.25, "sub": {"AR": 1}, "image/x": [[1]]}, 1.25)
    assert stream.getvalue() == "eval step=7 AP=0.25 sub|AR=1 seconds=1.2\n"


def test_many_metrics_are_cut():
    progress, stream = plain()
    progress.evaluating(7)
    progress.evaluated(7, {f"m{i}": i for i in range(20)}, 1.0)
    assert "m7=7 (12 more) seconds" in stream.getvalue()


def test_who_is_not_chief_shows_nothing():
    progress, stream = plain(enabled=False)
    progress.start(0, 10)
    progress.advance(3)
    progress.trained(5, {"loss": 1.0})
    progress.evaluating(5)
    progress.evaluated(5, {}, 1.0)
    progress.say("text")
    progress.stop()
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_live_line_and_is_left_as_it_was():
    stream = io.StringIO()

    def run():
        with Progress(stream=stream, terminal=True) as progress:
            progress.start(0, 10)
            progress.trained(5, {"loss": 0.25})
            progress.evaluating(5)
            progress.say("a [message] in brackets")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    shown = stream.getvalue()
    assert "5/10" in shown and "loss 0.25" in shown and "a [message] in brackets" in shown
    # The cursor was hidden, and the last word about it is that it is shown.
    assert "\x1b[?25l" in shown
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")


def test_a_message_before_the_start_opens_no_live_line():
    stream = io.StringIO()
    Progress(stream=stream, terminal=True).say("hello")
    assert stream.getvalue() == "hello\n"


def test_stop_may_come_twice_and_before_anything():
    progress, _ = plain()
    progress.stop()
    progress.start(0, 1)
    progress.stop()
    progress.stop()


def test_peak_memory_is_that_of_this_process():
    # More than an interpreter with pytest can do without, less than any machine has.
    assert 10 * 2**20 < progress_lib.peak_memory() < 2**42
