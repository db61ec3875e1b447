import dataclasses
import json
import sys

import pytest

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory, run_record, user_modules
from hortus.core.run_identity import RunIdentity


@dataclasses.dataclass
class Model(hyperparams.Config):
    size: int = 1


@dataclasses.dataclass
class LargeModel(Model):
    depth: int = 3


@dataclasses.dataclass
class Task(cfg.TaskConfig):
    model: Model = dataclasses.field(default_factory=Model)


@dataclasses.dataclass
class SameTask(Task):
    """Has no field of its own."""


def again(params):
    """The identity of a config, by way of a file."""
    text = json.dumps(RunIdentity.of(params, "jax").as_dict())
    return RunIdentity.from_dict(json.loads(text))


def test_a_config_comes_back_with_its_classes():
    params = cfg.ExperimentConfig(task=SameTask(model=LargeModel(depth=5)))
    params.override({"trainer": {"optimizer_config": {"ema": {"average_decay": 0.5}}}})
    identity = again(params)
    assert identity.engine == "jax"
    assert list(identity.config_classes) == [
        "",
        "task",
        "task.model",
        "trainer.optimizer_config.ema",
    ]
    config = identity.new_config()
    config.override(params.as_dict())
    assert type(config.task) is SameTask
    assert type(config.task.model) is LargeModel
    assert config == params


def test_the_experiment_is_known_to_a_config_and_its_copies():
    @exp_factory.register_config_factory("identity_test")
    def _experiment():
        @dataclasses.dataclass
        class Inner(Task):
            """A class that can be reached by the experiment alone."""

        return cfg.ExperimentConfig(task=Inner()) if not made else made[0].replace()

    made = []
    params = exp_factory.get_exp_config("identity_test")
    made.append(params)
    assert exp_factory.name_of(params.replace(trainer={"train_steps": 3})) == "identity_test"
    assert exp_factory.name_of(cfg.ExperimentConfig()) == ""
    identity = again(params)
    assert type(identity.new_config().task) is type(params.task)
    assert exp_factory.name_of(identity.new_config()) == "identity_test"


def test_modules_of_a_user_are_imported_again(tmp_path, monkeypatch):
    monkeypatch.setattr(user_modules, "_asked", {})  # other tests ask for modules, too
    (tmp_path / "herbs.py").write_text(
        "import dataclasses\n"
        "from hortus.core import config_definitions as cfg\n"
        "@dataclasses.dataclass\n"
        "class Herbs(cfg.TaskConfig):\n"
        "    leaves: int = 3\n"
    )
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        user_modules.load("herbs")
        params = cfg.ExperimentConfig(task=sys.modules["herbs"].Herbs())
        identity = again(params)
        user_modules._asked.pop("herbs")
        assert identity.modules == ({"name": "herbs", "file": str(tmp_path / "herbs.py")},)
        del sys.modules["herbs"]
        identity.load_modules()
        assert type(identity.new_config().task).__module__ == "herbs"
        user_modules._asked.pop("herbs")
        del sys.modules["herbs"]
    # Where Python does not find it, the folder of the record stays out of the path.
    with pytest.raises(hyperparams.ConfigError) as error:
        identity.load_modules()
    for text in ("module herbs", "--import herbs", f"PYTHONPATH={tmp_path}", "name an experiment"):
        assert text in str(error.value)
    assert str(tmp_path) not in sys.path
    with pytest.raises(hyperparams.ConfigError, match=r"class herbs:Herbs, which is not there"):
        identity.new_config()


def test_a_module_that_fails_is_told(tmp_path, monkeypatch):
    (tmp_path / "weeds.py").write_text("import no_such_thing\n")
    monkeypatch.syspath_prepend(tmp_path)
    identity = RunIdentity(config_classes={"": "x:y"}, modules=({"name": "weeds"},))
    with pytest.raises(hyperparams.ConfigError, match=r"weeds, which cannot be imported: Module"):
        identity.load_modules()


@pytest.mark.parametrize("name", ["antigravity", "os", "__main__.x", "../evil", "hortus.cli.main "])
def test_a_record_cannot_have_anything_else_imported(name):
    before = set(sys.modules)
    identity = RunIdentity(config_classes={"": f"{name}:Config"}, modules=({"name": name},))
    if name not in sys.modules:
        with pytest.raises(hyperparams.ConfigError, match="no module of a user"):
            identity.load_modules()
    with pytest.raises(hyperparams.ConfigError, match="is not there"):
        identity.new_config()
    assert set(sys.modules) - before == set()


@pytest.mark.parametrize(
    "name", ["os:path.join", "hortus.core.registry:Registry", "json:JSONDecoder"]
)
def test_only_classes_of_configs_count(name):
    with pytest.raises(hyperparams.ConfigError, match="is not there"):
        RunIdentity(config_classes={"": name}).new_config()
    with pytest.raises(hyperparams.ConfigError, match="for an ExperimentConfig"):
        RunIdentity(config_classes={"": "hortus.hyperparams:Config"}).new_config()


@pytest.mark.parametrize(
    "damage",
    [
        {"config_classes": None},
        {"config_classes": {"task": "a:b"}},
        {"config_classes": {"": 3}},
        {"modules": {"name": "a"}},
        {"modules": ["a"]},
        {"modules": [{"file": "a"}]},
        {"experiment": None},
        {"engine": []},
    ],
)
def test_a_record_that_is_not_in_order_is_none(tmp_path, damage):
    run_record.write(tmp_path, cfg.ExperimentConfig(), "jax")
    record = json.loads((tmp_path / "run.json").read_text())
    assert run_record.identity(tmp_path) is not None
    record["starts"][-1].update(damage)
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert run_record.identity(tmp_path) is None
    record["starts"] = 3
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert run_record.identity(tmp_path) is None
