import types

import pytest

from hortus.vision.data import speed
from hortus.vision.dataloaders.errors import DataError


class Task:
    """Has some batches, then perhaps a fault."""

    def __init__(self, batches, fault=None):
        self.batches, self.fault = batches, fault

    def build_inputs(self, params):
        yield from range(self.batches)
        if self.fault is not None:
            raise self.fault

    def input_error(self, error):
        return DataError("image 7 is broken") if isinstance(error, RuntimeError) else None


PARAMS = types.SimpleNamespace(global_batch_size=4)


def test_batches_after_the_first_one_are_counted():
    found = speed.measure(Task(3), PARAMS, seconds=60)
    assert (found.batches, found.batch_size) == (2, 4)
    assert found.examples_per_second == pytest.approx(8 / found.seconds)
    assert "examples/s (2 batches" in str(found)


def test_one_batch_has_no_rate():
    found = speed.measure(Task(1), PARAMS, seconds=60)
    assert found.examples_per_second is None and "no rate can be told" in str(found)


def test_too_little_or_broken_data_is_told():
    with pytest.raises(DataError, match="less than one batch of 4"):
        speed.measure(Task(0), PARAMS)
    with pytest.raises(DataError, match="image 7 is broken"):
        speed.measure(Task(1, RuntimeError("op")), PARAMS)
    with pytest.raises(KeyError):
        speed.measure(Task(1, KeyError("fault of ours")), PARAMS)
