import keras
import pytest

from hortus import engine, hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import launch, performance


@pytest.fixture
def params():
    return cfg.ExperimentConfig(
        runtime=cfg.RuntimeConfig(distribution_strategy="one_device", seed=3)
    )


@pytest.fixture(autouse=True)
def as_before():
    yield
    keras.config.set_dtype_policy("float32")


def test_everything_is_settled(params, monkeypatch):
    asked = []
    monkeypatch.setattr(engine, "select", lambda *args, **_: asked.append(args) if args else None)
    params.override({"runtime": {"mixed_precision_dtype": "bfloat16", "fast_kernels": False}})
    allowed = []
    monkeypatch.setattr(performance, "set_fast_kernels", allowed.append)
    strategy = launch.prepare(params)
    first = keras.ops.convert_to_numpy(keras.random.uniform((3,)))
    assert strategy.num_replicas_in_sync == 1
    assert keras.config.dtype_policy().name == "mixed_bfloat16"
    assert allowed == [False]
    assert asked == [(None, 0)]  # the environment decides
    launch.prepare(params)
    assert (keras.ops.convert_to_numpy(keras.random.uniform((3,))) == first).all()
    params.runtime.engine = "jax"
    launch.prepare(params)
    assert asked[-1] == ("jax", 0)


def test_a_wrong_config_is_refused(params):
    params.runtime.engine = "jaxx"
    with pytest.raises(hyperparams.ConfigError, match=r"runtime\.engine.*jaxx"):
        launch.prepare(params)
    with pytest.raises(hyperparams.ConfigError, match=r"runtime\.engine.*jaxx"):
        launch.settle(params, "train")


def test_a_run_has_a_locked_copy(params):
    settled = launch.settle(params, "train")
    with pytest.raises(hyperparams.ConfigError, match="locked"):
        settled.runtime.seed = 4
    params.runtime.seed = 4
    assert settled.runtime.seed == 3
    assert launch.settle(settled, "train") == settled
