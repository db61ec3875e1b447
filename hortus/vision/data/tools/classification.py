"""Tools for images with classes."""

from collections.abc import Iterator
from typing import Any

from PIL import Image

from hortus.vision.configs import image_classification as configs
from hortus.vision.data.checks.findings import Finding
from hortus.vision.data.tools.data_tools import DataTools
from hortus.vision.dataloaders.dataset_info import DatasetInfo


class ClassificationTools(DataTools):
    """For images, each with a class or several."""

    task_config: configs.ImageClassificationTask

    def check(self) -> Iterator[Finding]:
        from hortus.vision.data.checks import classification

        yield from classification.check(self.task_config)

    def pictures(self, params: Any, count: int) -> list[Image.Image]:
        from hortus.vision.data.pictures import classification

        return classification.pictures(params, self.task_config, count)

    def examples(self, params: Any) -> Iterator[bytes]:
        from hortus.vision.data.records import classification

        yield from classification.examples(params, self.task_config)

    def info(self, params: Any) -> DatasetInfo:
        from hortus.vision.data.records import classification

        return classification.info(params, self.task_config)
