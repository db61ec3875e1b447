import json

import numpy as np
import pytest
from PIL import Image

from hortus.vision.data import shapes


def test_same_seed_same_scene():
    first, again = (next(shapes.scenes(1, seed=5)) for _ in range(2))
    other = next(shapes.scenes(1, seed=6))
    np.testing.assert_array_equal(first.image, again.image)
    assert not np.array_equal(first.image, other.image)


def test_a_scene_does_not_depend_on_how_many_there_are():
    few, many = list(shapes.scenes(2, seed=1)), list(shapes.scenes(4, seed=1))
    np.testing.assert_array_equal(few[1].image, many[1].image)


def test_boxes_masks_and_classes_agree():
    for scene in shapes.scenes(20, seed=2, size=64):
        assert len(scene.labels) == len(scene.masks) == len(scene.boxes) == len(scene.polygons)
        assert scene.masks.sum(axis=0).max(initial=0) <= 1, "objects do not share pixels"
        for label, mask, box in zip(scene.labels, scene.masks, scene.boxes, strict=True):
            top, left, bottom, right = box.astype(int)
            assert mask[top:bottom, left:right].sum() == mask.sum() > 0
            assert (scene.class_mask[mask] == label + 1).all()


@pytest.mark.parametrize("label", range(len(shapes.CLASSES)))
def test_objects_stand_out(label):
    scene = next(shapes.scenes(1, seed=3, max_objects=1, label=label))
    assert scene.labels.tolist() == [label]
    inside = scene.image[scene.masks[0]].mean(axis=0)
    outside = scene.image[~scene.masks[0]].mean(axis=0)
    assert np.abs(inside - outside).sum() > 40


def test_folders(tmp_path):
    shapes.write_folders(tmp_path, num_train=2, num_val=1, size=32)
    for split, count in (("train", 2), ("val", 1)):
        for name in shapes.CLASSES:
            files = list((tmp_path / split / name).iterdir())
            assert len(files) == count
            assert Image.open(files[0]).size == (32, 32)


@pytest.mark.filterwarnings("ignore:__array__")  # of pycocotools
def test_scenes_are_readable_by_coco(tmp_path):
    coco = pytest.importorskip("pycocotools.coco")
    shapes.write_scenes(tmp_path, num_train=3, num_val=12, size=48, crowds=True)
    content = json.loads((tmp_path / "train.json").read_text())
    assert [category["name"] for category in content["categories"]] == list(shapes.CLASSES)
    api = coco.COCO(tmp_path / "val.json")
    kinds = set()
    for annotation in api.loadAnns(api.getAnnIds()):
        image = api.loadImgs(annotation["image_id"])[0]
        mask = np.asarray(Image.open(tmp_path / "masks" / image["file_name"]))
        numbers = np.asarray(Image.open(tmp_path / "instances" / image["file_name"]))
        np.testing.assert_array_equal(numbers // 1000, mask)
        drawn = api.annToMask(annotation).astype(bool)
        seen = mask == annotation["category_id"]
        is_polygon = isinstance(annotation["segmentation"], list)
        kinds.add((annotation["iscrowd"], is_polygon))
        # Run-lengths are exact; the two ways to draw a polygon differ at its border.
        share = 0.8 if is_polygon else 1.0
        assert (seen & drawn).sum() >= share * annotation["area"]
        assert abs(int(drawn.sum()) - annotation["area"]) <= (1 - share) * annotation["area"] + 4
    # Whole objects, those that are partly hidden, and crowds.
    assert kinds == {(0, True), (0, False), (1, False)}


def test_crowds_change_no_other_object():
    for seed in range(6):
        plain, crowded = (
            shapes.draw_scene(np.random.default_rng(seed), 64, crowd=crowd)
            for crowd in (False, True)
        )
        assert not plain.is_crowd.any() and crowded.is_crowd.sum() <= 1
        count = len(plain.labels)
        np.testing.assert_array_equal(crowded.labels[:count], plain.labels)
        assert crowded.masks.sum(axis=0).max() <= 1
        assert np.all(crowded.masks[:count] <= plain.masks)
