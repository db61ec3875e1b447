import dataclasses

import pytest

from hortus.core import base_task, task_factory
from hortus.vision.configs import image_classification as configs
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.serving.services.classification import ClassificationService
from hortus.vision.serving.services.service import service_of
from hortus.vision.tasks.image_classification import ImageClassificationTask


@dataclasses.dataclass
class InheritedConfig(configs.ImageClassificationTask):
    """Of a task that says nothing about its service."""


@task_factory.register_task_cls(InheritedConfig)
class InheritedTask(ImageClassificationTask):
    """Inherits everything."""


class UnservedTask(base_task.Task):
    """Says nothing of how it is served."""

    def build_model(self):
        raise AssertionError("a service needs no model")

    def build_inputs(self, params, input_context=None):
        raise AssertionError("a service needs no inputs")


class OwnService(ClassificationService):
    """Knows one more fact."""

    def __init__(self, task_config, class_names, colour="red"):
        super().__init__(task_config, class_names)
        self.colour = colour

    def facts(self):
        return {"colour": self.colour}


class OwnTask(ImageClassificationTask):
    """Is served in its own way."""

    def build_service(self, class_names=(), **facts):
        return OwnService(self.task_config, class_names, **facts)


def config(cls=configs.ImageClassificationTask):
    params = cls()
    params.override({"model": {"num_classes": 2, "input_size": [8, 8, 3]}})
    return params


def test_a_task_inherits_its_service():
    service = service_of(task_factory.get_task(config(InheritedConfig)), ["a", "b"])
    assert type(service) is ClassificationService and service.class_names == ("a", "b")


def test_a_task_has_a_service_of_its_own_with_what_it_knew_before():
    service = service_of(OwnTask(config()), ["a"], **OwnService(config(), [], "blue").facts())
    assert type(service) is OwnService and service.colour == "blue"


def test_a_task_without_a_service_is_told_where_to_name_it():
    with pytest.raises(DataError, match=r"from UnservedTask\.build_service"):
        service_of(UnservedTask(config()))
