import pathlib

import numpy as np
import pytest
from PIL import Image

from hortus.testing import instance_files as files
from hortus.vision.dataloaders.detection import instance_files
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.ops.segmentations import decode_bitmap


@pytest.mark.parametrize("with_classes", [True, False])
def test_objects_are_those_of_the_numbers(tmp_path, with_classes):
    path = files.write_instance_masks(tmp_path, with_classes=with_classes)
    data = instance_files.read_instance_masks(path)
    assert len(data) == 4 and data.counts.tolist() == [3] * 4
    assert data.category_names == (files.NAMES if with_classes else ("object",))
    assert data.categories.tolist() == ([0, 1, 2] if with_classes else [0, 0, 0]) * 4
    assert data.object_ids[:3] == ((1007, 2007, 3007) if with_classes else (3, 8, 13))
    for row, code in enumerate(data.masks):
        expected = files.blobs(row // 3)[row % 3]
        np.testing.assert_array_equal(decode_bitmap(code, *files.SIZE), expected)
        x, y, width, height = files.box_of(expected)
        np.testing.assert_array_equal(data.boxes[row], [y, x, y + height, x + width])
        assert data.areas[row] == expected.sum()
    assert instance_files.read_instance_masks(path, include_masks=False).masks is None


def test_numbers_are_read_from_all_kinds_of_files(tmp_path):
    numbers = np.zeros((6, 8), np.int32)
    numbers[1:3, 2:5], numbers[4:, 6:] = 9, 200
    palette = Image.fromarray(numbers.astype(np.uint8), "P")
    palette.putpalette(list(range(256)) * 3)
    palette.save(tmp_path / "palette.png")
    Image.fromarray(numbers.astype(np.uint8)).save(tmp_path / "grey.png")
    Image.fromarray(numbers.astype(np.uint16)).save(tmp_path / "deep.png")
    large = numbers * 300
    colours = np.stack([large % 256, large // 256 % 256, large // 65536], axis=-1)
    Image.fromarray(colours.astype(np.uint8)).save(tmp_path / "colour.png")
    for name, factor in (("palette", 1), ("grey", 1), ("deep", 1), ("colour", 300)):
        found = instance_files.read_object_numbers(str(tmp_path / f"{name}.png"))
        np.testing.assert_array_equal(found, factor * numbers)


def test_an_image_without_objects_is_background(tmp_path):
    path = pathlib.Path(files.write_instance_masks(tmp_path))
    Image.new("L", files.SIZE[::-1]).save(path / "1.png")
    data = instance_files.read_instance_masks(str(path))
    assert data.counts.tolist() == [3, 0, 3, 3]


def test_a_class_that_has_no_name_is_unknown(tmp_path):
    path = files.write_instance_masks(tmp_path)
    (tmp_path / "classes.json").write_text('["corner", "disc"]')
    data = instance_files.read_instance_masks(path)
    assert data.categories.tolist() == [0, 1, -1] * 4


def test_images_have_to_be_found(tmp_path):
    path = pathlib.Path(files.write_instance_masks(tmp_path))
    moved = path.rename(tmp_path / "numbers")
    with pytest.raises(DataError, match="where are the images of"):
        instance_files.read_instance_masks(str(moved))
    found = instance_files.read_instance_masks(str(moved), str(tmp_path / "images"))
    assert len(found) == 4
    (moved / "2.png").unlink()
    with pytest.raises(DataError, match="1 of 4 images have no mask"):
        instance_files.read_instance_masks(str(moved), str(tmp_path / "images"))


def test_a_file_that_is_no_image_is_named(tmp_path):
    path = pathlib.Path(files.write_instance_masks(tmp_path))
    (path / "0.png").write_bytes(b"none")
    with pytest.raises(DataError, match=r"0\.png: cannot be read as an image"):
        instance_files.read_instance_masks(str(path))
