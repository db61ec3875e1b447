"""Tools for images with masks of classes."""

from collections.abc import Iterator
from typing import Any

from PIL import Image

from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.data.checks.findings import Finding
from hortus.vision.data.tools.data_tools import DataTools
from hortus.vision.dataloaders.dataset_info import DatasetInfo


class SegmentationTools(DataTools):
    """For images with a class for every pixel."""

    task_config: configs.SemanticSegmentationTask

    def check(self) -> Iterator[Finding]:
        from hortus.vision.data.checks import segmentation

        yield from segmentation.check(self.task_config)

    def pictures(self, params: Any, count: int) -> list[Image.Image]:
        from hortus.vision.data.pictures import segmentation

        return segmentation.pictures(params, self.task_config, count)

    def examples(self, params: Any) -> Iterator[bytes]:
        from hortus.vision.data.records import segmentation

        yield from segmentation.examples(params, self.task_config)

    def info(self, params: Any) -> DatasetInfo:
        from hortus.vision.data.records import segmentation

        return segmentation.info(params, self.task_config)
