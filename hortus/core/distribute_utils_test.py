import keras
import pytest

from hortus.core import distribute_utils
from hortus.engine import EngineError
from hortus.testing import run_under_engine

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


@pytest.mark.parametrize("kind", ["off", "one_device", "mirrored"])
def test_one_device_is_one_replica(kind):
    strategy = distribute_utils.get_distribution_strategy(kind)
    assert strategy.num_replicas_in_sync == 1
    with strategy.scope():
        assert float(keras.Variable(2.0).value) == 2.0


def test_an_unknown_name_suggests_a_known_one():
    with pytest.raises(EngineError, match=r"unknown strategy 'mirored'.*mirrored"):
        distribute_utils.get_distribution_strategy("mirored")


def test_the_parameter_server_names_the_alternative():
    with pytest.raises(EngineError, match="Use multi_worker_mirrored"):
        distribute_utils.get_distribution_strategy("parameter_server")


def test_a_tpu_needs_jax_and_a_tpu():
    expected = "runtime.engine=jax" if ON_TENSORFLOW else "but JAX runs on cpu here"
    with pytest.raises(EngineError, match=expected):
        distribute_utils.get_distribution_strategy("tpu", tpu_address="local")


def test_more_hosts_need_a_number_each():
    with pytest.raises(EngineError, match=r"task_index is -1, but there are 2.*from 0 to 1"):
        distribute_utils.get_distribution_strategy(
            "multi_worker_mirrored", worker_hosts="localhost:1,localhost:2"
        )


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX asks the cluster's own manager")
def test_more_hosts_have_to_be_named(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(EngineError, match=r"set runtime.worker_hosts=.*or the variable TF_CONFIG"):
        distribute_utils.get_distribution_strategy("multi_worker_mirrored")


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX has its own way to sum")
def test_a_sum_that_is_not_known_names_those_that_are(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "")  # which naming hosts sets
    from hortus.engine.tensorflow import strategy

    with pytest.raises(EngineError, match="expected nccl or hierarchical_copy"):
        strategy._cross_device_ops("ring", 1)
    with pytest.raises(EngineError, match="not for several hosts; ring or nccl"):
        strategy._multi_worker("tree", "localhost:1", 0)


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX chooses the platform itself")
def test_gpus_that_are_not_there_are_an_error():
    with pytest.raises(EngineError, match=r"runtime.num_gpus is 3, but TensorFlow sees 0 GPUs"):
        distribute_utils.get_distribution_strategy("mirrored", num_gpus=3)


TWO_DEVICES = """
from hortus.core import distribute_utils
strategy = distribute_utils.get_distribution_strategy("mirrored", virtual_cpu_devices=2)
print("replicas:", strategy.num_replicas_in_sync)
"""


@pytest.mark.parametrize("engine", ["tensorflow", "jax"])
def test_virtual_devices_make_replicas(engine):
    assert "replicas: 2" in run_under_engine(engine, TWO_DEVICES)
