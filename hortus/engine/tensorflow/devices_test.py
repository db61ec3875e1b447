import pytest
import tensorflow as tf

from hortus.engine import EngineError
from hortus.engine.tensorflow import devices


def test_without_gpus_the_cpu_is_the_device():
    names = [device.name for device in tf.config.list_logical_devices("CPU")]
    assert devices.local_devices(0) == names
    if not tf.config.list_logical_devices("GPU"):
        assert devices.local_devices(-1) == names  # all GPUs, of which there are none


def test_gpus_that_are_there_are_taken_in_order(monkeypatch):
    gpus = [tf.config.LogicalDevice(f"/device:GPU:{index}", "GPU") for index in range(3)]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: gpus)
    assert devices.local_devices(2) == ["/device:GPU:0", "/device:GPU:1"]
    assert len(devices.local_devices(-1)) == 3
    with pytest.raises(EngineError, match="num_gpus is 4, but TensorFlow sees 3 GPUs"):
        devices.local_devices(4)


def test_a_cpu_that_is_in_use_cannot_be_split():
    tf.zeros([])  # uses it
    with pytest.raises(EngineError, match=r"cannot be split into 7 devices any more.*fresh one"):
        devices.split_cpu(7)


def test_accelerators_are_hidden_and_those_in_use_left(monkeypatch):
    hidden = []

    def hide(names, kind):
        if kind == "TPU":
            raise RuntimeError("Visible devices cannot be modified after being initialized")
        hidden.append((names, kind))

    monkeypatch.setattr(tf.config, "set_visible_devices", hide)
    devices.hide_accelerators()
    assert hidden == [([], "GPU")]
