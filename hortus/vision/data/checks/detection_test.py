import pathlib
import shutil

import pytest

from hortus.testing import detection_files as files
from hortus.vision.configs import retinanet
from hortus.vision.data import checks


def task(train="", validation="", file_type="coco", num_classes=4, size=64):
    return retinanet.RetinaNetTask(
        model=retinanet.RetinaNet(num_classes=num_classes, input_size=[size, size, 3]),
        train_data=retinanet.DataConfig(input_path=train, file_type=file_type, is_training=True),
        validation_data=retinanet.DataConfig(input_path=validation, file_type=file_type),
    )


def found(task_config, level=None):
    findings = list(checks.check(task_config))
    return [str(finding) for finding in findings if level in (None, finding.level)]


@pytest.fixture
def coco(tmp_path):
    return files.write_coco(tmp_path / "train")


def test_sound_data_has_notes_only(coco):
    findings = list(checks.check(task(coco)))
    assert {finding.level for finding in findings} == {"note"}
    text = "\n".join(map(str, findings))
    assert "4 images with 6 objects of 3 categories; crowds 1, difficult 0" in text
    assert "images without objects, kept as examples of background: 1" in text
    assert "  ant        2" in text


def change(key, place, **values):
    return lambda content: content[key][place].update(values)


@pytest.mark.parametrize(
    ("level", "alter", "message"),
    [
        ("error", change("annotations", 0, bbox=[9, 9, -4, 3]), "(negative width or height): 1"),
        ("warning", change("annotations", 0, bbox=[9, 9, 0, 3]), "without an area"),
        ("warning", change("annotations", 0, bbox=[9, 9, 90, 3]), "beyond their image"),
        ("error", change("annotations", 0, category_id=9), "objects of unknown categories: 1"),
        ("error", change("annotations", 0, bbox=[9, float("nan"), 4, 3]), "no numbers: 1"),
        ("error", change("images", 0, file_name="lost.png"), "images that are not there: 1"),
        ("error", change("images", 0, width=33), "has 32 x 24 pixels (width x height)"),
        ("note", change("categories", 2, id=9), "category ids are not 1 to 3 but 1 to 9"),
        (
            "warning",
            lambda content: content["categories"].append({"id": 4, "name": "dog"}),
            "categories without any object: 1\n  dog",
        ),
        (
            "warning",
            lambda content: content["annotations"].append({**content["annotations"][0], "id": 99}),
            "boxes that are there more than once: 1",
        ),
    ],
)
def test_faults_of_annotations_are_found(coco, level, alter, message):
    files.change_coco(coco, alter)
    if message.startswith("category ids"):
        config = task(coco, num_classes=4)
    else:
        config = task(coco, num_classes=5 if "dog" in message else 4)
    texts = found(config, level)
    # An object of an unknown category leaves its own one empty.
    assert any(message in text for text in texts), texts


def test_normalised_boxes_and_empty_data_are_found(coco):
    def shrink(content):
        for annotation in content["annotations"]:
            annotation["bbox"] = [value / 100 for value in annotation["bbox"]]

    files.change_coco(coco, shrink)
    assert any("shares of the image" in text for text in found(task(coco), "error"))
    files.change_coco(coco, lambda content: content.update(annotations=[]))
    assert any("no image has an object" in text for text in found(task(coco), "error"))
    assert any("no data is named" in text for text in found(task(), "error"))
    assert any("no such file" in text for text in found(task("lost.json"), "error"))


def test_broken_and_copied_images_are_found(coco, tmp_path):
    folder = pathlib.Path(coco).parent / "images"
    validation = files.write_coco(tmp_path / "validation")
    (folder / "0.png").write_bytes(b"no image")
    shutil.copy(folder / "1.png", folder / "2.png")
    files.change_coco(coco, change("images", 2, height=40, width=30))
    texts = "\n".join(found(task(coco, validation)))
    assert "error: train_data: images that cannot be read: 1" in texts
    assert "warning: train_data: images that are there more than once: 1" in texts
    # Images 1 and 3 are in both, 2 was replaced, 0 cannot be read.
    assert "images of validation_data that are in train_data too" in texts
    assert "(50.0% of validation_data): 2" in texts


def test_classes_have_to_be_those_of_the_model_and_of_training(coco, tmp_path):
    assert any("num_classes=4" in text for text in found(task(coco, num_classes=3), "error"))
    assert any("num_classes=4; it is 0" in text for text in found(task(coco, num_classes=0)))
    assert any("num_classes=4 would fit" in text for text in found(task(coco, num_classes=9)))
    other = files.write_coco(tmp_path / "other")
    files.change_coco(other, change("categories", 1, name="wasp"))
    texts = found(task(coco, other), "error")
    assert any("the categories wasp are not among the classes of the model" in t for t in texts)


def test_the_file_that_evaluation_goes_by_has_to_have_the_images(coco, tmp_path):
    config = task(validation=coco)
    config.annotation_file = coco
    assert not found(config, "error")
    other = files.write_coco(tmp_path / "other")

    def renumber(content):
        for image in content["images"]:
            image["id"] += 5000

    config.annotation_file = files.change_coco(other, renumber)
    assert any("4 of 4 images are not in annotation_file" in t for t in found(config, "error"))
    config.annotation_file = "lost.json"
    assert any("annotation_file lost.json cannot be read" in t for t in found(config, "error"))


def test_records_are_checked(tmp_path):
    sound = files.write_records(tmp_path / "sound")
    assert not found(task(sound, file_type="tfrecord"), "error")
    pixels = files.write_records(
        tmp_path / "pixels", image__object__bbox__xmax=lambda old, _: [30.0 for _ in old]
    )
    texts = found(task(pixels, file_type="tfrecord"), "error")
    assert any("pixels, record 0: " in text and "look like pixels" in text for text in texts)
    zero = files.write_records(
        tmp_path / "zero", image__object__class__label=lambda old, _: [one - 1 for one in old]
    )
    texts = found(task(zero, file_type="tfrecord"), "error")
    assert any("classes 0 are not among the model's 1 to 3" in text for text in texts)


def test_voc_folders_are_checked_and_small_objects_told(tmp_path):
    root = files.write_voc(tmp_path / "voc")
    texts = found(task(root, file_type="voc", size=8))
    assert any("difficult 3" in text for text in texts)
    assert any("larger task.model.input_size" in text for text in texts)
