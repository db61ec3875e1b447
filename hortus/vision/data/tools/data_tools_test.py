import dataclasses

import pytest

from hortus.core import base_task, task_factory
from hortus.vision.configs import image_classification, retinanet, semantic_segmentation
from hortus.vision.data import checks, pictures, records
from hortus.vision.data.checks.findings import Finding
from hortus.vision.data.of_config import tools_for
from hortus.vision.data.tools.classification import ClassificationTools
from hortus.vision.data.tools.data_tools import DataTools
from hortus.vision.data.tools.detection import DetectionTools
from hortus.vision.data.tools.segmentation import SegmentationTools
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.tasks.image_classification import ImageClassificationTask


@dataclasses.dataclass
class InheritedConfig(image_classification.ImageClassificationTask):
    """Of a task that says nothing about its data."""


@dataclasses.dataclass
class OwnConfig(image_classification.ImageClassificationTask):
    """Of a task with tools of its own."""


@dataclasses.dataclass
class ToollessConfig(image_classification.ImageClassificationTask):
    """Of a task that is made from nothing."""


@task_factory.register_task_cls(InheritedConfig)
class InheritedTask(ImageClassificationTask):
    """Inherits everything."""


class OwnTools(DataTools):
    """Can check, and nothing else."""

    def check(self):
        yield Finding("warning", "rather dark")


@task_factory.register_task_cls(OwnConfig)
class OwnTask(ImageClassificationTask):
    """Has tools of its own."""

    def build_data_tools(self):
        return OwnTools(self.task_config)


@task_factory.register_task_cls(ToollessConfig)
class ToollessTask(base_task.Task):
    """Says nothing of its data."""

    def build_model(self):
        raise AssertionError("tools need no model")

    def build_inputs(self, params, input_context=None):
        raise AssertionError("tools need no inputs")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (image_classification.ImageClassificationTask, ClassificationTools),
        (InheritedConfig, ClassificationTools),
        (OwnConfig, OwnTools),
        (retinanet.RetinaNetTask, DetectionTools),
        (semantic_segmentation.SemanticSegmentationTask, SegmentationTools),
    ],
)
def test_a_task_says_itself_what_its_tools_are(config, expected):
    params = config()
    tools = tools_for(params)
    assert type(tools) is expected and tools.task_config is params


def test_functions_that_take_a_config_use_the_tools_of_its_task():
    assert [finding.level for finding in checks.check(OwnConfig())] == ["warning"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: pictures.pictures(c.train_data, c, 1), "cannot be drawn: OwnTools.*pictures"),
        (lambda c: list(records.examples(c.train_data, c)), "cannot be converted to records"),
    ],
)
def test_what_the_tools_cannot_do_is_an_error_that_names_them(call, message):
    with pytest.raises(DataError, match=message):
        call(OwnConfig())
    assert records.info(OwnConfig().train_data, OwnConfig()).num_examples is None


def test_a_task_without_tools_is_told_where_to_name_them():
    with pytest.raises(DataError, match=r"from ToollessTask\.build_data_tools"):
        list(checks.check(ToollessConfig()))
