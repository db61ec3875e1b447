import os
import subprocess
import sys
import types

import pytest

from hortus.engine import environment


@pytest.fixture
def clean(monkeypatch):
    """No Keras, and none of the variables."""
    for name in ("KERAS_BACKEND", "XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS"):
        # Set first, so that what `select` writes is undone, too.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    return monkeypatch


def loaded_with(backend):
    return types.SimpleNamespace(backend=types.SimpleNamespace(backend=lambda: backend))


def test_tensorflow_by_default(clean):
    assert environment.select() == "tensorflow"
    assert os.environ["KERAS_BACKEND"] == "tensorflow"


def test_whatever_is_imported_first_gives_tensorflow_its_settings():
    source = "import hortus.core.base_trainer, os; print(os.environ['TF_ENABLE_ONEDNN_OPTS'])"
    names = {"TF_ENABLE_ONEDNN_OPTS", "TF_CPP_MIN_LOG_LEVEL"}
    clean = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", source], env=clean, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"


def test_the_variable_decides_where_nobody_else_does(clean):
    clean.setenv("KERAS_BACKEND", "jax")
    assert environment.select() == "jax"


def test_what_the_user_set_stays(clean):
    clean.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    environment.prepare()
    assert os.environ["TF_ENABLE_ONEDNN_OPTS"] == "0"


def test_an_unknown_engine(clean):
    with pytest.raises(environment.EngineError, match="unknown engine 'torch': expected tensor"):
        environment.select("torch")


def test_config_and_variable_that_differ(clean):
    clean.setenv("KERAS_BACKEND", "jax")
    with pytest.raises(environment.EngineError, match=r"KERAS_BACKEND is jax: set runtime\.engine"):
        environment.select("tensorflow")
    assert os.environ["KERAS_BACKEND"] == "jax"


def test_keras_is_loaded_with_the_other_engine(clean):
    clean.setitem(sys.modules, "keras", loaded_with("tensorflow"))
    with pytest.raises(environment.EngineError, match="loaded with tensorflow: set KERAS_BACKEND"):
        environment.select("jax")
    clean.setitem(sys.modules, "keras", loaded_with("jax"))
    assert environment.select("jax") == "jax"


def test_devices_of_jax_come_from_a_flag_that_others_stay_beside(clean):
    environment.select("jax", virtual_cpu_devices=2)
    assert os.environ["XLA_FLAGS"] == "--xla_force_host_platform_device_count=2"
    clean.setenv("XLA_FLAGS", "--xla_dump_to=/x --xla_force_host_platform_device_count=4")
    environment.select("jax", virtual_cpu_devices=2)
    assert os.environ["XLA_FLAGS"].endswith("device_count=4")
    clean.setenv("XLA_FLAGS", "--xla_dump_to=/x")
    environment.make_xla_deterministic()
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=/x --xla_gpu_deterministic_ops=true"
