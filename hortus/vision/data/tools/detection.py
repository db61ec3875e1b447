"""Tools for images with boxes."""

from collections.abc import Iterator
from typing import Any

from PIL import Image

from hortus.vision.configs import detection as configs
from hortus.vision.data.checks.findings import Finding
from hortus.vision.data.tools.data_tools import DataTools
from hortus.vision.dataloaders.dataset_info import DatasetInfo


class DetectionTools(DataTools):
    """For images with objects in boxes."""

    task_config: configs.DetectionTask

    def check(self) -> Iterator[Finding]:
        from hortus.vision.data.checks import detection

        yield from detection.check(self.task_config)

    def pictures(self, params: Any, count: int) -> list[Image.Image]:
        from hortus.vision.data.pictures import detection

        return detection.pictures(params, self.task_config, count)

    def examples(self, params: Any) -> Iterator[bytes]:
        from hortus.vision.data.records import detection

        yield from detection.examples(params, self.task_config)

    def info(self, params: Any) -> DatasetInfo:
        from hortus.vision.data.records import detection

        return detection.info(params, self.task_config)
