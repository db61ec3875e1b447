import dataclasses
import uuid
import warnings

import pytest

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory, exp_parser


@dataclasses.dataclass
class Oak(hyperparams.Config):
    age: int = 100


@dataclasses.dataclass
class Tree(hyperparams.OneOfConfig):
    type: str = "oak"
    oak: Oak = Oak()
    elm: Oak = Oak()


@dataclasses.dataclass
class Forest(cfg.TaskConfig):
    model: Tree = Tree()


@pytest.fixture
def experiment():
    name = f"forest_{uuid.uuid4().hex}"

    @exp_factory.register_config_factory(name)
    def forest() -> cfg.ExperimentConfig:
        config = cfg.ExperimentConfig(
            task=Forest(train_data=cfg.DataConfig(is_training=True)),
            restrictions=["task.train_data.is_training != None"],
        )
        config.task.model.elm.age = 3  # a branch that the experiment does not choose
        return config

    return name


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def parse(experiment, lock=True, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return exp_parser.parse_config(
            exp_parser.ParseConfigOptions(experiment=experiment, **options), lock
        )


def test_later_parts_win(experiment, write):
    first = write("first.yaml", "trainer: {train_steps: 1, max_to_keep: 1}\nruntime: {tpu: a}\n")
    second = write("second.yaml", "trainer:\n  train_steps: 2\n")
    config = parse(
        experiment,
        config_file=[first, second],
        tpu="b",
        tf_data_service="grpc://c",
        params_override="task.train_data.tf_data_service_address=d",
    )
    assert config.trainer.train_steps == 2
    assert config.trainer.max_to_keep == 1
    assert config.runtime.tpu == "b"
    assert config.task.train_data.tf_data_service_address == "d"
    assert config.task.validation_data.tf_data_service_address == "grpc://c"


def test_every_value_knows_where_it_is_from(experiment, write):
    path = write("own.yaml", "trainer:\n  train_steps: 2\n")
    config = parse(experiment, config_file=path, tpu="b", params_override="trainer.max_to_keep=3")
    assert str(config.origin("trainer.train_steps")) == f"{path}:2"
    assert str(config.origin("trainer.max_to_keep")) == "--params_override"
    assert str(config.origin("runtime.tpu")) == "--tpu"
    assert str(config.origin("task.train_data.is_training")) == f"experiment {experiment}"


def test_a_tpu_of_a_file_survives_when_there_is_no_flag(experiment, write):
    config = parse(experiment, config_file=[write("own.yaml", "runtime: {tpu: a}")])
    assert config.runtime.tpu == "a"


def test_several_overrides_are_merged_in_order(experiment):
    config = parse(experiment, params_override=["trainer.train_steps=1", "trainer.train_steps=2"])
    assert config.trainer.train_steps == 2


def test_the_config_is_locked_unless_asked_otherwise(experiment):
    config = parse(experiment)
    with pytest.raises(hyperparams.ConfigError, match="locked"):
        config.trainer.train_steps = 3
    free = parse(experiment, lock=False)
    free.trainer.train_steps = 3
    assert free.trainer.train_steps == 3


def test_restrictions_are_checked(experiment):
    with pytest.raises(hyperparams.ConfigError, match=r"is_training is None \(--params_override\)"):
        parse(experiment, params_override="task.train_data.is_training=null")


def test_an_unknown_key_is_an_error_or_an_addition(experiment):
    with pytest.raises(hyperparams.ConfigError, match=r"trainer\.steps \(--params_override\)"):
        parse(experiment, params_override="trainer.steps=1")
    with pytest.warns(hyperparams.ConfigWarning, match="'steps'"):
        config = exp_parser.parse_config(
            exp_parser.ParseConfigOptions(
                experiment, params_override="trainer.steps=1", strict_override=False
            )
        )
    assert config.trainer.steps == 1


def test_a_value_in_a_branch_that_is_not_chosen_gives_a_warning(experiment, write):
    path = write("own.yaml", "task:\n  model:\n    elm:\n      age: 5\n")
    with pytest.warns(hyperparams.ConfigWarning) as caught:
        exp_parser.parse_config(exp_parser.ParseConfigOptions(experiment, config_file=path))
    assert [str(warning.message) for warning in caught] == [
        f"task.model.elm ({path}:3) has no effect: task.model.type is 'oak' (default)"
    ]


def test_a_value_in_the_chosen_branch_gives_no_warning(experiment):
    config = parse(experiment, params_override="task.model.type=elm,task.model.elm.age=5")
    assert config.task.model.get().age == 5
