import os
import signal
import threading

import pytest

from hortus.core.actions import Preempted, Preemption


class Controller:
    def __init__(self):
        self.asked = []
        self.said = []
        self.progress = self

    def request_stop(self, reason, signum):
        self.asked.append(signum)

    def say(self, text):
        self.said.append(text)


@pytest.fixture
def action():
    action = Preemption()
    action.bind(Controller())
    action.begin()
    yield action
    action.end()


def send(signum):
    os.kill(os.getpid(), signum)


def test_sigterm_asks_to_stop(action):
    send(signal.SIGTERM)
    send(signal.SIGTERM)  # impatient, but it changes nothing
    assert action.controller.asked == [signal.SIGTERM]


def test_ctrl_c_once_asks_and_twice_stops_at_once(action):
    send(signal.SIGINT)
    assert action.controller.asked == [signal.SIGINT]
    assert "Ctrl-C again stops at once" in action.controller.said[0]
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)


def test_the_end_puts_everything_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    action = Preemption()
    action.bind(Controller())
    action.begin()
    assert signal.getsignal(signal.SIGTERM) == action._on_signal
    action.end()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_outside_of_the_main_thread_it_does_nothing():
    before = signal.getsignal(signal.SIGTERM)
    action = Preemption()
    thread = threading.Thread(target=lambda: (action.begin(), action.end()))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before


def test_exit_codes_and_what_to_do_next():
    stop = Preempted(signal.SIGTERM, 120, "/run/ckpt-120")
    assert isinstance(stop, SystemExit) and stop.code == 75
    assert str(stop) == (
        "Stopped at step 120 by SIGTERM. The checkpoint is /run/ckpt-120; "
        "run the same command again to go on from there."
    )
    assert Preempted(signal.SIGINT, 1, None).code == 130
