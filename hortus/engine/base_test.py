import numpy as np

from hortus.engine import base


def test_the_batch_size_is_the_length_of_the_first_part_that_has_one():
    assert base.batch_size({"a": np.float32(1), "b": np.zeros([3, 2])}) == 3
    assert base.batch_size(np.float32(1)) is None
    assert base.batch_size(()) is None


def test_timing_starts_anew():
    timing = base.Timing(steps=2, seconds=1.0, data_wait_seconds=0.5, examples=8)
    timing.reset()
    assert timing == base.Timing()


def test_an_uneven_batch_says_what_to_change():
    assert "a batch of 7 examples" in base.uneven(7, 2)
    assert "global_batch_size a multiple" in base.uneven(7, 2)
