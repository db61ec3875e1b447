import math
import os

import numpy as np
import pytest

from hortus.core import event_file
from hortus.core.summary_manager import SummaryManager, SummaryManagerInterface, SummaryWriter
from hortus.testing import run_under_engine


@pytest.fixture(autouse=True)
def _closed(monkeypatch):
    """Closes the writers that a test leaves open."""
    made, original = [], SummaryWriter.__init__

    def init(self, folder):
        original(self, folder)
        made.append(self)

    monkeypatch.setattr(SummaryWriter, "__init__", init)
    yield
    for writer in made:
        writer.close()


def read(folder):
    """What TensorBoard's own reader sees; it loads TensorFlow."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0}).Reload()


def points(reader, tag):
    return [(event.step, event.value) for event in reader.Scalars(tag)]


def test_scalars_at_their_steps_and_nested_ones_in_sub_folders(tmp_path):
    manager = SummaryManager(tmp_path)
    for step in (10, 20):
        manager.global_step = step
        manager.write_summaries(
            {"loss": np.float32(step / 2), "head": {"boxes": {"loss": step}}, "flag": True}
        )
    manager.flush()
    assert points(read(tmp_path), "loss") == [(10, 5.0), (20, 10.0)]
    assert points(read(tmp_path), "flag") == [(10, 1.0), (20, 1.0)]
    assert points(read(tmp_path / "head" / "boxes"), "loss") == [(10, 10.0), (20, 20.0)]
    assert read(tmp_path / "head").Tags()["scalars"] == []


def test_values_that_are_not_finite_stay_what_they_are(tmp_path):
    manager = SummaryManager(tmp_path, global_step=1)
    manager.write_summaries({"a": math.nan, "b": math.inf})
    manager.flush()
    reader = read(tmp_path)
    assert math.isnan(reader.Scalars("a")[0].value)
    assert reader.Scalars("b")[0].value == math.inf


def test_values_that_are_no_numbers_are_left_out(tmp_path):
    manager = SummaryManager(tmp_path, global_step=1)
    manager.write_summaries({"a": 1.0, "per_class": np.zeros(3), "name": "text"})
    manager.flush()
    assert read(tmp_path).Tags()["scalars"] == ["a"]


def test_after_flush_everything_is_there_though_nothing_was_closed(tmp_path):
    manager = SummaryManager(tmp_path, global_step=1)
    manager.write_summaries({"a": 1.0})
    manager.flush()
    assert points(read(tmp_path), "a") == [(1, 1.0)]
    manager.global_step = 2
    manager.write_summaries({"a": 2.0})
    manager.flush()
    assert points(read(tmp_path), "a") == [(1, 1.0), (2, 2.0)]


def test_rewind_drops_later_steps_everywhere_and_goes_on(tmp_path):
    def write(manager, steps):
        for step in steps:
            manager.global_step = step
            manager.write_summaries({"loss": step, "nested": {"loss": step}})
            manager.flush()

    write(SummaryManager(tmp_path), range(1, 6))
    resumed = SummaryManager(tmp_path)
    resumed.rewind(3)
    write(resumed, range(4, 7))
    resumed.rewind(5)  # in the same process
    write(resumed, [6])
    expected = [(step, float(step)) for step in range(1, 7)]
    assert points(read(tmp_path), "loss") == expected
    assert points(read(tmp_path / "nested"), "loss") == expected


def test_rewind_leaves_files_alone_that_have_nothing_later(tmp_path):
    manager = SummaryManager(tmp_path, global_step=3)
    manager.write_summaries({"a": 1.0})
    manager.flush()
    before = {path: os.stat(path).st_ino for path in event_file.paths(str(tmp_path))}
    manager.rewind(3)
    assert {path: os.stat(path).st_ino for path in event_file.paths(str(tmp_path))} == before


def test_a_record_that_a_kill_has_torn_does_no_harm(tmp_path):
    manager = SummaryManager(tmp_path, global_step=1)
    for step in (1, 2, 3):
        manager.global_step = step
        manager.write_summaries({"a": step})
    manager.flush()
    (path,) = event_file.paths(str(tmp_path))
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 3)
    resumed = SummaryManager(tmp_path, global_step=2)
    resumed.rewind(1)
    resumed.write_summaries({"a": 2})
    resumed.flush()
    assert points(read(tmp_path), "a") == [(1, 1.0), (2, 2.0)]


def test_no_folder_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    manager = SummaryManager(None, global_step=1)
    manager.write_summaries({"a": 1.0, "b": {"c": 2.0}})
    manager.summary_writer("b").scalar("c", 1.0, step=1)
    manager.flush()
    manager.rewind(0)
    assert os.listdir(tmp_path) == []


def test_nothing_is_made_before_the_first_summary(tmp_path):
    manager = SummaryManager(tmp_path / "train", global_step=1)
    manager.summary_writer()
    manager.flush()
    assert os.listdir(tmp_path) == []


def test_a_summary_needs_a_step(tmp_path):
    with pytest.raises(ValueError, match="global_step"):
        SummaryManager(tmp_path).write_summaries({"a": 1.0})


def test_a_custom_manager_needs_the_three_methods():
    with pytest.raises(TypeError, match=r"flush.*summary_writer.*write_summaries"):
        SummaryManagerInterface()


def test_no_tensorflow_is_loaded():
    code = (
        "import sys, tempfile\n"
        "from hortus.core.summary_manager import SummaryManager\n"
        "manager = SummaryManager(tempfile.mkdtemp(), global_step=1)\n"
        "manager.write_summaries({'a': 1.0})\n"
        "manager.flush()\n"
        "print('tensorflow' in sys.modules)\n"
    )
    assert run_under_engine("jax", code).splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("images", "pixel"),
    [
        (np.full([2, 3, 5, 3], 0.5, np.float32), (128, 128, 128)),
        (np.full([2, 3, 5, 3], 7, np.uint8), (7, 7, 7)),
        (np.full([2, 3, 5, 3], 300, np.int32), (255, 255, 255)),
        (np.full([2, 3, 5, 1], True), 255),
        (np.full([2, 3, 5, 4], np.nan), (0, 0, 0, 0)),
    ],
)
def test_pictures(tmp_path, images, pixel):
    import io

    from PIL import Image

    writer = SummaryWriter(str(tmp_path))
    writer.image("image/x", images, step=3)
    writer.flush()
    reader = read(tmp_path)
    assert reader.Tags()["images"] == ["image/x/0", "image/x/1"]
    (event,) = reader.Images("image/x/1")
    assert (event.step, event.height, event.width) == (3, 3, 5)
    picture = Image.open(io.BytesIO(event.encoded_image_string))
    assert picture.format == "PNG" and picture.size == (5, 3)
    assert picture.getpixel((4, 2)) == pixel


def test_what_is_no_picture_is_told(tmp_path):
    with pytest.raises(ValueError, match=r"'x'.*got \[3, 3\]"):
        SummaryWriter(str(tmp_path)).image("x", np.zeros([3, 3]), step=1)


def test_tf_summary_writes_to_the_default_writer(tmp_path):
    tf = pytest.importorskip("tensorflow")

    class Custom(SummaryManager):
        """As users write it."""

        def write_summaries(self, summary_dict):
            for name, value in summary_dict.items():
                with self.summary_writer("sub").as_default():
                    self._summary_fn(name, value, step=self._global_step)

    manager = Custom(tmp_path, summary_fn=tf.summary.scalar, global_step=4)
    manager.summary_writer("sub").scalar("before", 1.0, step=3)
    manager.write_summaries({"loss": 0.5})
    with manager.summary_writer("sub").as_default():
        tf.summary.image("picture", np.zeros([1, 2, 2, 3], np.uint8), step=5)
    manager.summary_writer("sub").scalar("after", 2.0, step=6)
    manager.flush()
    reader = read(tmp_path / "sub")
    assert points(reader, "before") == [(3, 1.0)]
    assert points(reader, "after") == [(6, 2.0)]
    (event,) = reader.Tensors("loss")
    assert event.step == 4 and tf.make_ndarray(event.tensor_proto) == 0.5
    assert reader.Tensors("picture")[0].step == 5
    manager.rewind(4)
    assert read(tmp_path / "sub").Tags()["tensors"] == ["loss"]


def test_a_summary_function_of_tensorflow(tmp_path):
    tf = pytest.importorskip("tensorflow")
    manager = SummaryManager(tmp_path, summary_fn=tf.summary.scalar, global_step=2)
    manager.write_summaries({"a": 1.0, "b": {"c": 3.0}})
    manager.flush()
    assert [event.step for event in read(tmp_path).Tensors("a")] == [2]
    assert read(tmp_path / "b").Tags()["tensors"] == ["c"]


def test_the_default_function_writes_numbers_when_a_subclass_calls_it(tmp_path):
    manager = SummaryManager(tmp_path, global_step=2)
    with manager.summary_writer().as_default():
        manager._summary_fn("a", 1.0, step=manager.global_step)
    manager.flush()
    assert points(read(tmp_path), "a") == [(2, 1.0)]


def test_a_manager_in_another_folder_is_of_the_same_kind_and_leaves_the_first_alone(tmp_path):
    class Loud(SummaryManager):
        def write_summary(self, writer, name, value, step):
            super().write_summary(writer, f"LOUD_{name}", value, step)

    first = Loud(tmp_path / "first", global_step=3)
    other = first.in_folder(str(tmp_path / "other"))
    other.write_summaries({"loss": 1.0})
    other.flush()
    assert not (tmp_path / "first").exists()
    assert points(read(tmp_path / "other"), "LOUD_loss") == [(3, 1.0)]
