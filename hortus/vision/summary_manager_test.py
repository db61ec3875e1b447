import numpy as np

from hortus.core.config_definitions import ExperimentConfig
from hortus.vision.summary_manager import (
    ImageScalarSummaryManager,
    maybe_build_eval_summary_manager,
)


def read(folder):
    """What TensorBoard's own reader sees; it loads TensorFlow."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0}).Reload()


def test_pictures_by_name_and_numbers_beside_them(tmp_path):
    manager = ImageScalarSummaryManager(tmp_path, global_step=7)
    pictures = np.zeros([2, 4, 6, 3], np.uint8)
    manager.write_summaries(
        {"image/boxes": pictures, "AP": 0.5, "image": 1.0, "sub": {"image/masks": pictures[:1]}}
    )
    manager.flush()
    tags = read(tmp_path).Tags()
    assert tags["images"] == ["image/boxes/0", "image/boxes/1"]
    assert tags["scalars"] == ["AP", "image"]
    (event,) = read(tmp_path / "sub").Images("image/masks")
    assert (event.step, event.width, event.height) == (7, 6, 4)


def test_a_manager_is_built_where_the_task_may_draw(tmp_path):
    params = ExperimentConfig()
    assert maybe_build_eval_summary_manager(params, tmp_path) is None
    params.task.allow_image_summary = True
    params.trainer.validation_summary_subdir = "eval"
    manager = maybe_build_eval_summary_manager(params, tmp_path)
    assert isinstance(manager, ImageScalarSummaryManager)
    assert manager.summary_dir == str(tmp_path / "eval")
    assert manager.global_step is None
