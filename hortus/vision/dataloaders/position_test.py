"""Saving and restoring the position of an input pipeline."""

import glob
import os

import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.configs import common
from hortus.vision.dataloaders.conftest import Host, write_records
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.input_reader_test import reader


def position_size(folder):
    return sum(os.path.getsize(name) for name in glob.glob(os.path.join(folder, "*")))


def check_restores(make, folder, before=13, after=30):
    """Batches after a restart are those of a run that went on, bit for bit."""
    iterator = iter(make())
    for _ in range(before):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(os.path.join(folder, "position"))
    expected = [next(iterator) for _ in range(after)]
    restored = iter(make())
    tf.train.Checkpoint(iterator=restored).read(path).assert_consumed()
    for want in expected:
        tf.nest.map_structure(np.testing.assert_array_equal, next(restored), want)


RESTORED = {
    "plain": {},
    "one file at a time": {"cycle_length": 1},
    "large blocks": {"block_length": 7, "cycle_length": 2},
    "one block": {"shuffle_buffer_size": 10000},
    "cache": {"cache": True},
    "skip": {"skip_bad_records": True},
    "copies": {"repeated_augment": 3},
    "postprocess": {
        "postprocess_fn": lambda a, b, seed: (a, b, tf.random.stateless_normal([2], seed))
    },
}


@pytest.mark.parametrize("name", RESTORED)
def test_the_position_can_be_saved(number_files, tmp_path, name):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    settings = dict(RESTORED[name])
    copies = settings.pop("repeated_augment", None)

    def make():
        one = reader(number_files, **settings)
        if copies:
            one.params = _WithCopies(one.params, copies)
        return one.read()

    check_restores(make, str(folder))


class _WithCopies:
    """Settings of a task that has `repeated_augment`."""

    def __init__(self, params, copies):
        self._params, self.repeated_augment = params, copies

    def __getattr__(self, name):
        return getattr(self._params, name)


def test_the_position_of_a_mix_and_of_a_host_can_be_saved(number_files, tmp_path):
    folder = os.path.dirname(number_files)
    mix = {"a": f"{folder}/numbers-0,{folder}/numbers-1", "b": f"{folder}/numbers-2"}
    (tmp_path / "checkpoint").mkdir()
    settings = {"weights": {"a": 0.7, "b": 0.3}, "global_batch_size": 20}
    check_restores(lambda: reader(mix, **settings).read(Host(2, 1)), str(tmp_path / "checkpoint"))


def test_a_checkpoint_is_small_though_the_buffer_is_large(tmp_path):
    records = [b"%6d" % n + os.urandom(2000) for n in range(500)]
    path = write_records(tmp_path / "large", records)
    params = common.DataConfig(
        {"input_path": path, "is_training": True, "global_batch_size": 8, "seed": 1}
    )
    params.shuffle_buffer_size = 400
    one = InputReader(params, parser_fn=lambda record: record)
    iterator = iter(one.read())
    next(iterator)
    (tmp_path / "checkpoint").mkdir()
    tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "checkpoint" / "position"))
    assert position_size(tmp_path / "checkpoint") < 50_000  # the buffer has 800,000 bytes
