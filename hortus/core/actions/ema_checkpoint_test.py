import contextlib
import types

import pytest

from hortus.core.actions import EMACheckpoint


class Fake:
    """An optimizer whose model it is, and the manager that saves it."""

    def __init__(self):
        self.weights, self.saved, self.waited = "weights", {}, 0

    @contextlib.contextmanager
    def averaged_weights(self):
        self.weights = "averages"
        try:
            yield
        finally:
            self.weights = "weights"

    def save(self, step):
        self.saved[step] = self.weights

    def wait(self):
        self.waited += 1


def test_averages_are_saved_and_weights_come_back():
    fake = Fake()
    action = EMACheckpoint(fake, fake)
    action.bind(types.SimpleNamespace(step=7))
    action({})
    action.end()
    assert fake.saved == {7: "averages"} and fake.weights == "weights" and fake.waited == 1


def test_weights_come_back_after_an_error():
    fake = Fake()
    action = EMACheckpoint(fake, types.SimpleNamespace(save=lambda step: 1 / 0))
    action.bind(types.SimpleNamespace(step=7))
    with pytest.raises(ZeroDivisionError):
        action({})
    assert fake.weights == "weights"
