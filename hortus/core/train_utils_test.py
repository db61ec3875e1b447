import builtins
import os
import types
import uuid

import pytest
from absl import flags

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory, train_utils
from hortus.core import flags as hortus_flags


@pytest.fixture
def experiment():
    name = f"experiment_{uuid.uuid4().hex}"
    exp_factory.register_config_factory(name)(
        lambda: cfg.ExperimentConfig(trainer=cfg.TrainerConfig(train_steps=7))
    )
    return name


def test_parse_configuration_reads_the_flags(experiment, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("trainer: {max_to_keep: 2}")
    values = flags.FlagValues()
    hortus_flags.define_flags(values)
    values(
        [
            "train.py",
            f"--experiment={experiment}",
            f"--config_file={path}",
            "--params_override=trainer.steps_per_loop=3",
        ]
    )
    config = train_utils.parse_configuration(values)
    assert config.trainer.train_steps == 7
    assert config.trainer.max_to_keep == 2
    assert config.trainer.steps_per_loop == 3
    with pytest.raises(hyperparams.ConfigError, match="locked"):
        config.trainer.train_steps = 1


def test_parse_configuration_takes_anything_with_the_attributes(experiment):
    config = train_utils.parse_configuration(
        types.SimpleNamespace(experiment=experiment), lock_return=False, print_return=False
    )
    config.trainer.train_steps = 1
    assert config.trainer.train_steps == 1


def test_parse_configuration_needs_an_experiment():
    with pytest.raises(ValueError, match="the flag experiment is missing"):
        train_utils.parse_configuration(types.SimpleNamespace(experiment=None))


def test_serialize_config_can_be_read_back(experiment, tmp_path):
    config = exp_factory.get_exp_config(experiment)
    path = train_utils.serialize_config(config, tmp_path / "new" / "run")
    assert path == str(tmp_path / "new" / "run" / "params.yaml")
    assert cfg.ExperimentConfig.from_yaml(path) == config


def test_a_resumed_run_tells_what_has_changed_and_nothing_else(experiment, tmp_path):
    config = exp_factory.get_exp_config(experiment)
    config.trainer.optimizer_config.override(
        {"learning_rate": {"type": "stepwise", "stepwise": {"boundaries": [1, 2]}}}
    )
    assert train_utils.changes_since_last_run(config, tmp_path) == []
    path = train_utils.serialize_config(config, tmp_path)
    # A tuple is a list in YAML, and what a newer version has added was changed by nobody.
    object.__setattr__(config.trainer, "_extras", ("pair",))
    config.trainer.__dict__["pair"] = (1, 2)
    train_utils.serialize_config(config, tmp_path)
    assert train_utils.changes_since_last_run(config, tmp_path) == []
    with open(path) as file:
        lines = [line for line in file if "max_to_keep" not in line]
    with open(path, "w") as file:
        file.writelines(lines)
    assert train_utils.changes_since_last_run(config, tmp_path) == []
    config.trainer.max_to_keep = 3
    config.trainer.train_steps = 12
    assert train_utils.changes_since_last_run(config, tmp_path) == [
        "Changed since the last run: trainer.max_to_keep was (absent), is 3",
        "Changed since the last run: trainer.train_steps was 7, is 12",
    ]
    with open(path, "w") as file:
        file.write("[")
    (line,) = train_utils.changes_since_last_run(config, tmp_path)
    assert line.startswith("The config of the last run cannot be read")


def test_serialize_config_replaces_whole_files_only(experiment, tmp_path, monkeypatch):
    config = exp_factory.get_exp_config(experiment)
    train_utils.serialize_config(config, tmp_path)
    before = (tmp_path / "params.yaml").read_text()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    config.trainer.train_steps = 8
    with pytest.raises(OSError, match="No space left"):
        train_utils.serialize_config(config, tmp_path)
    assert (tmp_path / "params.yaml").read_text() == before
    assert os.listdir(tmp_path) == ["params.yaml"]


def test_save_gin_config_writes_the_bindings_in_use(tmp_path):
    gin = pytest.importorskip("gin")

    @gin.configurable("pruning")
    def prune(branches=1):
        return branches

    gin.bind_parameter("pruning.branches", 7)
    assert prune() == 7
    path = train_utils.save_gin_config("train", tmp_path)
    assert path == str(tmp_path / "operative_config.train.gin")
    with open(path) as file:
        assert "pruning.branches = 7" in file.read()


def test_save_gin_config_says_what_to_install(tmp_path, monkeypatch):
    usual = builtins.__import__

    def without_gin(name, *args, **kwargs):
        if name == "gin":
            raise ImportError(name)
        return usual(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_gin)
    with pytest.raises(ImportError, match=r"gin-config is not installed.*hortus"):
        train_utils.save_gin_config("train", tmp_path)
