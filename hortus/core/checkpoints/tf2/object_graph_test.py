import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from hortus.core.checkpoints import errors
from hortus.core.checkpoints.tf2.object_graph import KEY, ObjectGraph, read_object_graph
from hortus.core.checkpoints.tf2.tensor_bundle import TensorBundle


class Block(tf.Module):
    def __init__(self, value):
        super().__init__()
        self._conv = tf.Module()
        self._conv.kernel = tf.Variable(tf.fill((2, 3), value))
        self.scales = [tf.Variable(value), tf.Variable(value + 1)]


@pytest.fixture
def prefix(tmp_path):
    block = Block(1.5)
    model = tf.Module()
    model.backbone = block
    checkpoint = tf.train.Checkpoint(
        model=model, backbone=block, global_step=tf.Variable(7, dtype=tf.int64)
    )
    return checkpoint.write(str(tmp_path / "ckpt-1"))


def test_variables_have_the_paths_of_their_attributes(prefix):
    found = read_object_graph(prefix)
    assert set(found) == {
        "backbone/_conv/kernel",
        "backbone/scales/0",
        "backbone/scales/1",
        "global_step",
    }
    assert float(found["backbone/scales/1"]) == 2.5
    assert found["backbone/_conv/kernel"].tolist() == [[1.5] * 3] * 2
    assert found["global_step"].dtype == np.int64


def test_every_way_leads_to_an_object(prefix):
    graph = ObjectGraph(TensorBundle(prefix))
    assert graph.find("model", "backbone") == graph.find("backbone") > 0
    assert graph.find("model", "head") == -1
    assert set(graph.variables(graph.find("model"))) == {
        "backbone/_conv/kernel",
        "backbone/scales/0",
        "backbone/scales/1",
    }
    assert graph.shape(graph.find("backbone", "_conv", "kernel")) == (2, 3)


def test_slots_of_optimizers_are_not_taken_for_weights(tmp_path):
    weight = tf.Variable([1.0, 2.0])
    optimizer = tf.Module()
    checkpoint = tf.train.Checkpoint(x=weight, optimizer=optimizer)
    found = read_object_graph(checkpoint.write(str(tmp_path / "a")))
    assert list(found) == ["x"]


def test_a_checkpoint_without_a_graph_has_its_keys(tmp_path):
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "a"),
        tensor_names=["conv/kernel", "text"],
        shape_and_slices=["", ""],
        tensors=[tf.constant(2.0), tf.constant("x")],
    )
    assert {name: float(v) for name, v in read_object_graph(str(tmp_path / "a")).items()} == {
        "conv/kernel": 2.0
    }


def test_a_damaged_graph_is_told(prefix):
    bundle = TensorBundle(prefix)
    entry = bundle._entry(KEY)
    with open(prefix + ".data-00000-of-00001", "r+b") as file:
        file.seek(entry.get(4, [0])[0] + 8)
        file.write(b"\xff" * 40)
    with pytest.raises(errors.CorruptCheckpointError, match="object graph is damaged"):
        read_object_graph(prefix)


def test_reading_needs_neither_tensorflow_nor_keras(prefix):
    code = (
        "import sys\n"
        "from hortus.core.checkpoints import read_object_graph\n"
        f"found = read_object_graph({prefix!r})\n"
        "assert found['backbone/_conv/kernel'].shape == (2, 3)\n"
        "assert not {'tensorflow', 'keras', 'jax'} & set(sys.modules)\n"
    )
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
