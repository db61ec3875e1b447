import dataclasses
from typing import ClassVar

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


def test_a_config_can_name_the_module_of_its_task(tmp_path, monkeypatch):
    @dataclasses.dataclass
    class Declared(cfg.TaskConfig):
        task_module: ClassVar[str] = "declared_task_of_this_test"

    @dataclasses.dataclass
    class Special(Declared):
        """Shares it."""

    assert task_factory.has_task(Special) and task_factory.find_task_cls(Special) is None
    assert not task_factory.has_task(cfg.TaskConfig)
    (tmp_path / "declared_task_of_this_test.py").write_text(
        "from hortus.core import task_factory\n"
        "import hortus.core.task_factory_test as test\n"
        "@task_factory.register_task_cls(test.DECLARED[0])\n"
        "class Task: pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    DECLARED.append(Declared)
    assert task_factory.get_task_cls(Special).__name__ == "Task"


DECLARED: list = []


@pytest.mark.slow
def test_every_task_of_ours_is_declared_where_nothing_is_loaded():
    from hortus.core import base_task
    from hortus.vision import registry_imports

    registry_imports.load_tasks()
    registered = {
        config: task
        for config, task in task_factory._TASKS.items()
        if task.__module__.startswith("hortus.vision.tasks.")
        and config.__module__.startswith("hortus.vision.configs.")
    }
    assert registered
    assert {config: config.task_module for config in registered} == {
        config: task.__module__ for config, task in registered.items()
    }
    # The names of classes that a task knows are kept with its runs.
    for task in registered.values():
        if hasattr(task, "class_names"):
            assert task.learnt_classes is not base_task.Task.learnt_classes, task
