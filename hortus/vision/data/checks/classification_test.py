import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.configs import image_classification as configs
from hortus.vision.data import progress
from hortus.vision.data.checks import check
from hortus.vision.dataloaders.conftest import make_example, make_image, write_records


def png(number, size=(24, 32)):
    return tf.io.encode_png(make_image(number, size)).numpy()


def write_folder(folder, images):
    """`images` by class and file name, as bytes."""
    for name, content in images.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            path.write_bytes(content)
    return str(folder)


SOUND = {"ant/0.png": png(0), "ant/1.png": png(1), "bee/0.png": png(2)}


@pytest.fixture
def find(tmp_path):
    """Checks folders; returns findings as (level, text) with places."""

    def find(train, validation=None, num_classes=2, **settings):
        config = configs.ImageClassificationTask(
            {"model": {"num_classes": num_classes, "input_size": [8, 8, 3]}}
        )
        for name, images in (("train_data", train), ("validation_data", validation)):
            if images is not None:
                path = images
                if isinstance(images, dict):
                    path = write_folder(tmp_path / name, images)
                config.override({name: {"input_path": path, "file_type": "folder", **settings}})
        return list(check(config))

    return find


def faults(findings):
    return [finding for finding in findings if finding.level != "note"]


def test_sound_data_has_facts_only(find):
    findings = find(SOUND, {"bee/7.png": png(7), "ant/8.png": png(8)})
    assert not faults(findings)
    texts = [finding.what for finding in findings]
    assert "train_data: 3 images of 2 classes" in texts
    table = next(text for text in texts if text.startswith("train_data: images per class"))
    assert table.splitlines()[1].split() == ["ant", "2", "#" * 30]
    assert table.splitlines()[2].split() == ["bee", "1", "#" * 15]
    assert any("heights 24 to 24, widths 32 to 32" in text for text in texts)


def test_no_data_is_an_error(find):
    (finding,) = find(None)
    assert finding.level == "error" and "set task.train_data.input_path" in finding.what


def test_a_path_that_is_not_there_is_an_error(find, tmp_path):
    (finding,) = find(str(tmp_path / "nowhere"))
    assert finding.level == "error" and "nowhere" in finding.what


def test_unreadable_images(find, tmp_path):
    (finding,) = faults(find({**SOUND, "bee/1.png": b"", "bee/2.png": png(3)[:100]}))
    assert finding.level == "error" and finding.count == 2
    assert finding.what == "train_data: images that cannot be read: 2"
    assert str(tmp_path / "train_data" / "bee" / "1.png") in finding.where[0]
    assert "the file is empty" in finding.where[0]


def test_empty_classes(find, tmp_path):
    (tmp_path / "train_data" / "cat").mkdir(parents=True)
    (finding,) = faults(find(SOUND, num_classes=3))
    assert finding.level == "warning" and finding.where == ("cat",)


@pytest.mark.parametrize(
    ("num_classes", "level", "text"),
    [
        (0, "error", "set task.model.num_classes=2"),
        (1, "error", "outside of 0 to 0"),
        (5, "warning", "the data names 2 classes, the model has 5"),
    ],
)
def test_the_number_of_classes(find, num_classes, level, text):
    (finding,) = faults(find(SOUND, num_classes=num_classes))
    assert finding.level == level and text in finding.what


def test_copies_across_splits(find):
    (finding,) = faults(find(SOUND, {"bee/7.png": png(2), "ant/8.png": png(8)}))
    assert finding.level == "error" and "50.0% of validation_data" in finding.what
    (place,) = finding.where
    assert "validation_data/bee/7.png = " in place and place.endswith("train_data/bee/0.png")


def test_a_copy_that_was_encoded_anew_is_found(find):
    other = tf.io.encode_png(make_image(2), compression=0).numpy()
    assert other != png(2)
    (finding,) = faults(find(SOUND, {"bee/7.png": other, "ant/8.png": png(8)}))
    assert "in train_data too" in finding.what


def test_copies_within_a_split(find):
    same, other = faults(
        find({**SOUND, "ant/2.png": png(2), "bee/3.png": png(9), "bee/4.png": png(9)})
    )
    assert same.what == "train_data: the same image with different classes: 1"
    assert "(ant)" in same.where[0] and "(bee)" in same.where[0]
    assert other.what == "train_data: images that are there more than once: 1"


def test_unbalanced_classes(find):
    many = {f"ant/{i}.png": png(i) for i in range(10)}
    (finding,) = faults(find({**many, "bee/0.png": png(50)}))
    assert (
        finding.level == "warning" and "largest class has 10 images, the smallest 1" in finding.what
    )


def test_classes_that_training_does_not_know(find):
    (finding,) = faults(find(SOUND, {"cat/0.png": png(9)}))
    assert finding.level == "error" and "cat are not among those of the training" in finding.what


def test_a_damaged_file_of_records(find, tmp_path):
    records = [make_example(image__encoded=png(i), image__class__label=i % 2) for i in range(4)]
    path = tmp_path / "records"
    write_records(path, records)
    damaged = bytearray(path.read_bytes())
    damaged[-100] ^= 0xFF
    path.write_bytes(damaged)
    findings = find(str(path), file_type="tfrecord")
    (finding,) = faults(findings)
    assert f"a file is damaged: {path}, record 3" in finding.what
    assert "train_data: 3 images of 2 classes" in [one.what for one in findings]


def test_labels_of_records_out_of_range(find, tmp_path):
    records = [make_example(image__encoded=png(i), image__class__label=i) for i in range(3)]
    path = write_records(tmp_path / "records", records)
    (finding,) = faults(find(path, file_type="tfrecord"))
    assert finding.where == (f"{path}, record 2: 2",)


def test_many_classes_make_a_short_table(find):
    images = {
        f"c{i:03d}/{j}.png": png(100 * i + j, (2, 2)) for i in range(30) for j in range(1 + i % 2)
    }
    findings = find(images, num_classes=30)
    (table,) = [f.what for f in findings if "images per class" in f.what]
    assert len(table.splitlines()) == 1 + 24 + 1 and "... 6 more" in table


def test_progress_is_reported(find):
    calls = []
    with progress.reported_to(lambda *call: calls.append(call)):
        find(SOUND)
    assert calls[0] == ("reading train_data", 0, 3) and calls[-1] == ("reading train_data", 3, 3)


def test_images_of_one_value_are_no_trouble(find):
    flat = tf.io.encode_png(np.zeros([4, 4, 1], np.uint8)).numpy()
    assert not faults(find({"ant/0.png": flat, "bee/0.png": png(1)}))
