import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from hortus.core.task_factory import get_task
from hortus.testing import runs
from hortus.vision.data import shapes
from hortus.vision.evaluation import coco_masks
from hortus.vision.ops.resize import rescale_to_original
from hortus.vision.serving.images import UnreadableImageError
from hortus.vision.serving.predictor import Predictor
from hortus.vision.serving.run import load_run
from hortus.vision.serving.run_config import read_config
from hortus.vision.serving.services import segmentation
from hortus.vision.serving.services.service import service_of


def test_classes_are_those_of_an_evaluation(classifier, pictures):
    run = load_run(classifier)
    batches = run.task.build_inputs(run.params.task.validation_data)
    expected = np.concatenate([run.model(images, training=False) for images, _ in batches])
    predictions = Predictor.from_run(classifier).predict(pictures / "val", batch_size=3)
    # The same bytes take the same way; batches of other sizes round otherwise.
    found = [prediction.logits for prediction in predictions]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    best = predictions[0]
    assert best.classes[0] == np.argmax(expected[0])
    assert best.names[0] == ("circle", "square", "triangle", "star")[best.classes[0]]
    assert best.scores == tuple(sorted(best.scores, reverse=True))
    assert sum(best.scores) == pytest.approx(1.0, abs=1e-6)


def test_pixels_are_as_good_as_files(classifier, pictures):
    predictor = Predictor.from_run(classifier)
    path = next((pictures / "val").rglob("*.png"))
    (of_file,) = predictor.predict(path)
    (of_pixels,) = predictor.predict(np.asarray(Image.open(path)))
    # The crop is cut before or after decoding, which is the same for a PNG.
    np.testing.assert_allclose(of_pixels.logits, of_file.logits, atol=1e-5)


def test_a_file_that_is_no_image_is_an_error_or_a_result(classifier, pictures, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"")
    good = next((pictures / "val").rglob("*.png"))
    predictor = Predictor.from_run(classifier)
    with pytest.raises(UnreadableImageError, match=r"broken.png: the file is empty"):
        predictor.predict([good, tmp_path / "broken.png"])


def test_boxes_are_those_of_an_evaluation(detector, scenes):
    run = load_run(detector)
    images, labels = next(iter(run.task.build_inputs(run.params.task.validation_data)))
    expected = run.model(images, image_shape=labels["image_info"][:, 1], training=False)
    predictions = Predictor.from_run(detector).predict(scenes / "images" / "val", batch_size=4)
    first = predictions[0]
    # 80 pixels became 64; 0.01 of a pixel is what 1e-5 in the features makes of a large anchor.
    boxes = np.asarray(expected["detection_boxes"][0]) * 80 / 64
    np.testing.assert_allclose(first.boxes, boxes[: len(first.boxes)], atol=1e-2)
    np.testing.assert_allclose(first.scores, expected["detection_scores"][0], atol=1e-5)
    np.testing.assert_array_equal(first.classes, expected["detection_classes"][0])
    assert len(predictions) == 6 and first.boxes.max() <= 80.0


def test_results_of_coco_have_the_categories_of_its_file(detector, scenes, tmp_path):
    path = next((scenes / "images" / "val").glob("*.png"))
    (prediction,) = Predictor.from_run(detector).predict(path)
    row, box = prediction.to_dict()[0], prediction.boxes[0]
    assert row["category_name"] == prediction.names[0]
    assert row["category_id"] == prediction.classes[0]
    expected = [box[1], box[0], box[3] - box[1], box[2] - box[0]]
    np.testing.assert_allclose(row["bbox"], expected, atol=0.01)
    drawn = prediction.draw(np.zeros((160, 160, 3), np.uint8))
    assert drawn.shape == (160, 160, 3)


def test_masks_of_objects_are_told_and_drawn(mask_detector, scenes):
    path = next((scenes / "images" / "val").glob("*.png"))
    predictor = Predictor.from_run(mask_detector)
    (prediction,) = predictor.predict(path)
    rows, masks = prediction.to_dict(), prediction.masks
    assert masks.shape == (len(rows), 80, 80) and masks.any()
    for row, mask in zip(rows, masks, strict=True):
        assert row["segmentation"]["size"] == [80, 80]
        code = {**row["segmentation"], "counts": row["segmentation"]["counts"].encode()}
        np.testing.assert_array_equal(coco_masks.decode([code])[0], mask)
        # A mask lies in its box, but for the pixels that the box cuts.
        found_rows, found_columns = np.nonzero(mask)
        if len(found_rows):
            x, y, width, height = row["bbox"]
            assert found_rows.min() >= y - 1 and found_rows.max() <= y + height
            assert found_columns.min() >= x - 1 and found_columns.max() <= x + width
    assert json.loads(json.dumps(rows)) == rows
    sure = dataclasses.replace(prediction, scores=np.full(len(rows), 0.9, np.float32))
    picture = sure.draw(np.zeros((160, 160, 3), np.uint8))
    assert picture.shape == (160, 160, 3) and picture.any()


def test_categories_whose_ids_are_no_class_numbers_are_kept(detector, scenes, tmp_path):
    content = json.loads((scenes / "val.json").read_text())
    for part, key in (("categories", "id"), ("annotations", "category_id")):
        for row in content[part]:
            row[key] = 100 - 10 * row[key]
    (tmp_path / "val.json").write_text(json.dumps(content))
    params = read_config(str(detector))
    params.override({"task": {"validation_data": {"input_path": str(tmp_path / "val.json")}}})
    service = service_of(get_task(params.task), ("circle", "square", "triangle", "star"))
    assert service.category_ids == (90, 80, 70, 60)
    # Where the data is not at hand, the numbers of the classes stand for them.
    params.override({"task": {"validation_data": {"input_path": "/nowhere.json"}}})
    assert service_of(get_task(params.task), ("circle",)).category_ids == ()


def test_masks_are_those_of_an_evaluation(segmenter, scenes):
    run = load_run(segmenter)
    images, labels = next(iter(run.task.build_inputs(run.params.task.validation_data)))
    logits = run.model(images, training=False)["logits"]
    expected = rescale_to_original(logits, labels["image_info"], 80, 80)
    predictions = Predictor.from_run(segmenter).predict(scenes / "images" / "val", batch_size=4)
    found = np.stack([prediction.mask for prediction in predictions[:4]])
    # Pixels on the border between two classes may fall to either side.
    assert np.mean(found == np.argmax(expected, axis=-1)) > 0.999
    first = predictions[0]
    assert first.to_dict()["classes"][0]["class"] in ("background", *shapes.CLASSES)
    assert sum(row["share"] for row in first.to_dict()["classes"]) == pytest.approx(1, abs=1e-4)
    mask = first.images()["masks"]
    assert mask.mode == "P" and np.array_equal(np.asarray(mask), first.mask)


def test_many_classes_of_a_large_image_are_enlarged_in_parts(segmenter, monkeypatch):
    service = service_of(load_run(segmenter).task)
    rng = np.random.default_rng(0)
    info = np.array([[40, 30], [64, 64], [1.6, 1.6], [0, 0]], np.float32)
    outputs = {"logits": rng.normal(size=(8, 8, 5)).astype("float32"), "image_info": info}
    whole = service.interpret(outputs, (40, 30)).mask
    monkeypatch.setattr(segmentation, "_CHUNK", 1)
    np.testing.assert_array_equal(service.interpret(outputs, (40, 30)).mask, whole)


@pytest.mark.parametrize("kind", ["classification", "detection", "instances", "segmentation"])
def test_pixels_take_the_way_of_encoded_images(kind, tmp_path, photo):
    params, _ = runs.make_run(tmp_path, kind)
    facts = {"category_ids": ()} if kind == "detection" else {}
    service = service_of(get_task(params.task), **facts)
    encoded = tf.io.encode_png(np.asarray(photo))
    one = service.inputs_of_encoded(encoded)
    pixels = np.asarray(photo)
    two = service.inputs_of_pixels(np.stack([pixels[::-1], pixels]))
    for name, value in one.items():
        # The same arithmetic, on rows of another length.
        np.testing.assert_allclose(two[name][1], value, atol=1e-5)
