import dataclasses

import pytest

from hortus.core import config_definitions as cfg
from hortus.core import task_factory


@dataclasses.dataclass
class FlowerConfig(cfg.TaskConfig):
    petals: int = 5


@dataclasses.dataclass
class RoseConfig(FlowerConfig):
    thorns: bool = True


@task_factory.register_task_cls(FlowerConfig)
class FlowerTask:
    def __init__(self, params, logging_dir=None):
        self.params, self.logging_dir = params, logging_dir


def test_the_class_of_the_config_decides():
    config = FlowerConfig(petals=6)
    task = task_factory.get_task(config, logging_dir="logs")
    assert type(task) is FlowerTask
    assert task.params is config
    assert task.logging_dir == "logs"


def test_a_config_that_subclasses_another_uses_its_task():
    assert type(task_factory.get_task(RoseConfig())) is FlowerTask


def test_a_config_without_a_task_is_an_error():
    @dataclasses.dataclass
    class TreeConfig(cfg.TaskConfig): ...

    with pytest.raises(LookupError, match=r"unknown task for the config .*TreeConfig"):
        task_factory.get_task(TreeConfig())


def test_a_config_has_one_task():
    with pytest.raises(KeyError, match="registered twice"):
        task_factory.register_task_cls(FlowerConfig)(FlowerTask)
