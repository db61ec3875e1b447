import io

import pytest

from hortus.cli import progress_bar


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still; `clock[0]` sets it."""
    now = [100.0]
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: now[0])
    return now


def test_elsewhere_a_line_comes_now_and_then(clock):
    stream = io.StringIO()
    with progress_bar.ProgressBar(stream, terminal=False, line_seconds=10.0) as bar:
        for second in range(26):
            clock[0] = 100.0 + second
            bar("reading", 2 * second, 100)
    assert stream.getvalue() == (
        "reading: 20/100, 2/s, 40 s left\nreading: 40/100, 2/s, 30 s left\n"
    )


def test_without_a_total_no_end_is_foretold(clock):
    stream = io.StringIO()
    bar = progress_bar.ProgressBar(stream, terminal=False)
    bar("reading", 0)
    clock[0] += 20
    bar("reading", 100)
    assert stream.getvalue() == "reading: 100, 5/s\n"


def test_the_rate_is_that_of_the_present_work(clock):
    stream = io.StringIO()
    bar = progress_bar.ProgressBar(stream, terminal=False)
    bar("reading", 0)
    clock[0] += 1000
    bar("writing", 0, 10)
    clock[0] += 10
    bar("writing", 5, 10)
    assert stream.getvalue() == "writing: 5/10, 0/s, 10 s left\n"


def test_a_terminal_gets_a_bar_that_goes_away():
    stream = io.StringIO()
    with progress_bar.ProgressBar(stream, terminal=True) as bar:
        bar("reading", 3, 4)
        bar.clear()
        print("a word in between", file=stream)
        bar("reading", 4, 4)
    shown = stream.getvalue()
    assert "reading" in shown and "4/4" in shown and "a word in between\n" in shown
    assert shown.rindex("\x1b[2K") > shown.rindex("4/4")  # the line is wiped at the end
