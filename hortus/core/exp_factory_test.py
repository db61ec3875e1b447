import uuid

import pytest

from hortus.core import config_definitions as cfg
from hortus.core import exp_factory


@pytest.fixture
def name():
    """The name of an experiment that sets one value when made and one afterwards."""
    name = f"experiment_{uuid.uuid4().hex}"

    @exp_factory.register_config_factory(name)
    def factory() -> cfg.ExperimentConfig:
        """A small one."""
        config = cfg.ExperimentConfig(trainer=cfg.TrainerConfig(train_steps=7))
        config.task.train_data.global_batch_size = 16
        return config

    return name


def test_each_call_gives_a_fresh_config(name):
    first = exp_factory.get_exp_config(name)
    first.trainer.train_steps = 8
    assert exp_factory.get_exp_config(name).trainer.train_steps == 7


def test_what_the_experiment_sets_is_stamped_with_its_name(name):
    config = exp_factory.get_exp_config(name)
    assert str(config.origin("trainer.train_steps")) == f"experiment {name}"
    assert str(config.origin("task.train_data.global_batch_size")) == f"experiment {name}"
    assert str(config.origin("trainer.max_to_keep")) == "default"


def test_names_are_listed_and_the_factory_can_be_had(name):
    assert name in exp_factory.exp_names()
    assert exp_factory.exp_names() == sorted(exp_factory.exp_names())
    assert exp_factory.get_exp_factory(name).__doc__ == "A small one."


def test_an_unknown_name_lists_near_ones(name):
    with pytest.raises(LookupError, match=f"unknown experiment.*did you mean '{name}'"):
        exp_factory.get_exp_config(name[:-1])


def test_a_name_is_registered_once(name):
    with pytest.raises(KeyError, match="registered twice"):
        exp_factory.register_config_factory(name)(cfg.ExperimentConfig)
