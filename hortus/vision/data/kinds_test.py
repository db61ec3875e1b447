import dataclasses

import pytest

from hortus.vision.configs import (
    image_classification,
    maskrcnn,
    retinanet,
    semantic_segmentation,
    video_classification,
)
from hortus.vision.data import kinds
from hortus.vision.dataloaders.errors import DataError


@dataclasses.dataclass
class Mine(image_classification.ImageClassificationTask):
    """A task of a user's own."""


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (image_classification.ImageClassificationTask, "classification"),
        (Mine, "classification"),
        (retinanet.RetinaNetTask, "detection"),
        (maskrcnn.MaskRCNNTask, "detection"),
        (semantic_segmentation.SemanticSegmentationTask, "segmentation"),
    ],
)
def test_a_tasks_config_tells_the_kind_of_its_data(config, kind):
    assert kinds.kind_of(config()) == kind


def test_a_kind_without_tools_is_named():
    with pytest.raises(DataError, match="no data tools for VideoClassificationTask"):
        kinds.kind_of(video_classification.VideoClassificationTask())


def test_a_module_that_is_not_there_is_named():
    config = image_classification.ImageClassificationTask()
    with pytest.raises(DataError, match=r"no module hortus\.vision\.ops\.classification"):
        kinds.module_for("hortus.vision.ops", config)
