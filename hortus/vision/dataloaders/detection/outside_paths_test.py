"""Annotation files that name files outside of the folder of their images."""

import pathlib
import shutil

import pytest

from hortus.testing import detection_files
from hortus.vision.configs import retinanet
from hortus.vision.dataloaders.detection import reader
from hortus.vision.dataloaders.errors import DataError


def move_first_image(folder: pathlib.Path, name: str) -> str:
    """Moves an image out of the folder of the data; returns its new path."""
    outside = folder / "outside.png"
    shutil.move(str(folder / "set" / name), outside)
    return str(outside)


def rename_first(path, name):
    def change(content):
        content["images"][0]["file_name"] = name

    detection_files.change_coco(path, change)


@pytest.mark.parametrize("is_absolute", [True, False])
def test_coco_file_names_stay_in_the_folder_unless_allowed(tmp_path, is_absolute):
    path = detection_files.write_coco(tmp_path / "set")
    first = sorted((tmp_path / "set" / "images").iterdir())[0]
    outside = move_first_image(tmp_path, f"images/{first.name}")
    rename_first(path, outside if is_absolute else "../../outside.png")
    params = retinanet.DataConfig(input_path=path, file_type="coco")
    with pytest.raises(DataError, match=r"train\.json: .*outside\.png' leads out of the folder"):
        reader.read_sets(params)
    params.allow_paths_outside = True
    (data,) = reader.read_sets(params).values()
    assert pathlib.Path(data.paths[0]).resolve() == pathlib.Path(outside)


def test_voc_names_stay_in_the_folder_unless_allowed(tmp_path):
    path = pathlib.Path(detection_files.write_voc(tmp_path / "set", {"train": [0, 1]}))
    images = path / "JPEGImages"
    (images / sorted(each.name for each in images.iterdir())[0]).unlink()
    file = path / "Annotations" / "0.xml"
    text = file.read_text()
    start, end = text.index("<filename>"), text.index("</filename>")
    file.write_text(f"{text[:start]}<filename>../../a.png{text[end:]}")
    params = retinanet.DataConfig(input_path=str(path), file_type="voc")
    with pytest.raises(DataError, match="leads out of the folder"):
        reader.read_sets(params)
    params.allow_paths_outside = True
    (data,) = reader.read_sets(params).values()
    assert data.paths[0].endswith("JPEGImages/../../a.png")


def test_a_voc_list_cannot_lead_out_of_the_folder(tmp_path):
    path = pathlib.Path(detection_files.write_voc(tmp_path / "set", {"train": [0]}))
    names = path / "ImageSets" / "Main" / "train.txt"
    names.write_text("0\n../../../etc/passwd\n")
    params = retinanet.DataConfig(input_path=str(names), file_type="voc")
    with pytest.raises(DataError, match=r"etc/passwd' leads out of the folder"):
        reader.read_sets(params)
