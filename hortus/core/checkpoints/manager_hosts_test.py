"""Two real hosts: processes with a strategy over both, which sum up metrics together."""

import json
import os
import socket
import subprocess
import sys

import pytest

_HOST = """
import json, os, time
import numpy as np
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before all other work of TensorFlow
import keras
from hortus.core.checkpoints import Checkpoint, CheckpointManager
from hortus.core.checkpoints.manager_test import Position

def make(position):
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(2)])
        model.build((None, 3))
        mean, count = keras.metrics.Mean("loss"), keras.metrics.Metric(name="examples")
        count.n = count.add_variable((), "zeros", dtype="int32", name="n")
    data = Position(position)
    checkpoint = Checkpoint(model=model, metrics=[mean, count], data=data)
    manager = CheckpointManager(
        checkpoint, DIRECTORY, is_chief=HOST == 0, host_index=HOST, host_count=2)
    return model, mean, count, data, manager

@tf.function
def step():
    def replica():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        mean.update_state(tf.cast(number, tf.float32) + 0.5)
        count.n.assign_add(2 + number)
    strategy.run(replica)

model, mean, count, data, manager = make(f"position {HOST}")
step()
manager.save(5)
manager.close()
while not manager.latest_checkpoint:
    time.sleep(0.05)
again, mean, count, data, manager = make("")
told = {
    "step": manager.restore(),
    "total": float(mean.total.numpy()),
    "count": float(mean.count.numpy()),
    "n": int(count.n.numpy()),
    "position": data.value,
    "weights agree": all(
        np.array_equal(a.numpy(), b.numpy()) for a, b in zip(model.weights, again.weights)),
}
print("TOLD", json.dumps(told))
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


@pytest.mark.slow
def test_two_hosts_save_and_restore_together(tmp_path):
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    processes = []
    for host in range(2):
        cluster = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": host}}
        environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
        environment["TF_CONFIG"] = json.dumps(cluster)
        code = f"HOST, DIRECTORY = {host}, {str(tmp_path)!r}\n{_HOST}"
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", code],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        outputs = [process.communicate(timeout=180)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for host, output in enumerate(outputs):
        assert "TOLD" in output, output
        assert json.loads(output.rpartition("TOLD")[2].splitlines()[0]) == {
            "step": 5,
            "total": 2.0,
            "count": 2.0,
            "n": 5,  # odd: it cannot be shared equally
            "position": f"position {host}",
            "weights agree": True,
        }
    assert os.listdir(tmp_path) == ["ckpt-5"]
