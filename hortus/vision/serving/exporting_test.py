import errno
import json
import os
import socket
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from hortus.engine import disk
from hortus.testing.engines import run_under_engine
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.serving import exporting
from hortus.vision.serving.description import read_description
from hortus.vision.serving.exported import evaluate_export
from hortus.vision.serving.exporting import export_run
from hortus.vision.serving.formats import FORMATS, ExportError, Onnx
from hortus.vision.serving.parity import Parity
from hortus.vision.serving.predictor import Predictor
from hortus.vision.serving.run import load_run
from hortus.vision.serving.services.differences import detection_differences, difference


@pytest.fixture(scope="module")
def exported(classifier, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("export") / "saved")
    assert export_run(str(classifier), "saved_model", path).parity.holds
    return path


def test_an_export_predicts_as_its_run(exported, classifier, pictures):
    one = Predictor.load(exported).predict(pictures / "val")
    two = Predictor.from_run(classifier).predict(pictures / "val")
    assert [each.names for each in one] == [each.names for each in two]
    # The limit that an export has to keep.
    np.testing.assert_allclose([p.logits for p in one], [p.logits for p in two], atol=1e-4)


def test_a_saved_model_has_three_signatures(exported, pictures):
    runtime = FORMATS["saved_model"].open_runtime(exported)
    encoded = [path.read_bytes() for path in sorted((pictures / "val").rglob("*.png"))[:3]]
    pixels = np.stack([tf.io.decode_png(each) for each in encoded])
    features = [
        tf.train.Features(
            feature={"image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[each]))}
        )
        for each in encoded
    ]
    examples = [tf.train.Example(features=each).SerializeToString() for each in features]
    expected = runtime.run(pixels)["logits"]
    for name, values in (("image_bytes", encoded), ("tf_example", examples)):
        found = runtime.call(name, values)["logits"]
        np.testing.assert_allclose(found, expected, atol=1e-5)  # other order of the arithmetic


def test_an_export_has_the_metrics_of_its_run(exported, pictures):
    description = read_description(exported)
    predictions = Predictor.load(exported).predict(pictures / "val")
    truth = [name for name in ("circle", "square", "star", "triangle") for _ in range(2)]
    right = [p.names[0] == name for p, name in zip(predictions, truth, strict=True)]
    logs = evaluate_export(exported, description, description.params())
    assert logs["accuracy"] == pytest.approx(np.mean(right))


def test_detections_are_exported_and_measured(detector, tmp_path, scenes):
    path = str(tmp_path / "saved")
    export = export_run(str(detector), "saved_model", path, images=[str(scenes / "images" / "val")])
    assert export.parity.images == 4 and set(export.parity.differences) == {
        "detection_boxes",
        "detection_scores",
    }
    description = read_description(path)
    assert 0 <= evaluate_export(path, description, description.params())["AP50"] <= 1


def test_masks_of_objects_are_exported_and_measured(mask_detector, tmp_path, scenes):
    path = str(tmp_path / "model")
    images = [str(scenes / "images" / "val")]
    export = export_run(str(mask_detector), "saved_model", path, images=images)
    assert "detection_masks" in export.parity.differences
    assert export.parity.largest <= 1e-4  # the limit of an export
    description = read_description(path)
    logs = evaluate_export(path, description, description.params())
    run = load_run(mask_detector)
    state = None
    for batch in run.task.build_inputs(run.params.task.validation_data):
        outputs = run.task.validation_step(batch, run.model)
        state = run.task.aggregate_logs(state, tf.nest.map_structure(np.asarray, outputs))
    expected = run.task.reduce_aggregated_logs(state)
    # Random weights find a little, and the same in both.
    for name in ("AP", "ARmax100", "mask_AP", "mask_ARmax100"):
        assert logs[name] == pytest.approx(float(expected[name]), abs=1e-3)


def test_a_detector_returns_what_its_export_config_says(detector, scenes, tmp_path):
    images = scenes / "images" / "val"
    path = str(tmp_path / "saved")
    wanted = (
        "output_normalized_coordinates",
        "cast_num_detections_to_float",
        "cast_detection_classes_to_float",
        "output_intermediate_features",
    )
    overrides = [f"task.export_config.{name}=true" for name in wanted]
    export_run(str(detector), "saved_model", path, images=[str(images)], overrides=overrides)
    pixels = np.asarray(Image.open(sorted(images.iterdir())[0]).convert("RGB"))
    # Of an image that is not square, so that its two sides cannot be taken for each other.
    outputs = FORMATS["saved_model"].open_runtime(path).run(pixels[None, :60])
    assert outputs["num_detections"].dtype == outputs["detection_classes"].dtype == np.float32
    assert {"backbone_3", "decoder_3"} <= set(outputs)
    boxes = outputs["detection_boxes"]
    assert 0.1 < boxes.max() <= 1 and boxes.min() >= 0
    plain = path + "-plain"
    export_run(str(detector), "saved_model", plain, images=[str(images)])
    for one, two in zip(*(Predictor.load(p).predict(images) for p in (path, plain)), strict=True):
        assert (one.classes == two.classes).all() and len(one.boxes)
        # Pixels of images of 80: a share of that is rounded at 1e-7.
        np.testing.assert_allclose(one.boxes, two.boxes, atol=1e-4)
    measured = []
    for each in (path, plain):
        description = read_description(each)
        measured.append(evaluate_export(each, description, description.params())["AP50"])
    assert measured[0] == pytest.approx(measured[1])


def test_masks_are_resized_to_the_image_where_that_is_asked_for(segmenter, scenes, tmp_path):
    images = scenes / "images" / "val"
    path = str(tmp_path / "saved")
    overrides = ["task.export_config.rescale_output=true"]
    export_run(str(segmenter), "saved_model", path, images=[str(images)], overrides=overrides)
    pixels = np.asarray(Image.open(sorted(images.iterdir())[0]).convert("RGB"))
    outputs = FORMATS["saved_model"].open_runtime(path).run(pixels[None, :60])
    assert outputs["predicted_masks"].shape == (1, 60, 80) == outputs["logits"].shape[:3]
    for one, two in zip(
        Predictor.load(path).predict(images),
        Predictor.from_run(segmenter).predict(images),
        strict=True,
    ):
        # Where two classes are as good as each other, rounding decides.
        assert one.mask.shape == two.mask.shape and (one.mask == two.mask).mean() > 0.999
    description = read_description(path)
    with pytest.raises(DataError, match=r"rescale_output.*export without it"):
        evaluate_export(path, description, description.params())


def test_a_failed_comparison_leaves_everything_as_it_was(classifier, tmp_path, monkeypatch):
    path = tmp_path / "saved"
    path.mkdir()
    (path / "hortus_export.json").write_text("old")
    monkeypatch.setattr(exporting, "compare", lambda *_: Parity({"logits": 2e-4}, 1))
    with pytest.raises(ExportError, match=r"not kept: .*logits 2.0e-04"):
        export_run(str(classifier), "saved_model", str(path), force=True)
    assert (path / "hortus_export.json").read_text() == "old" and os.listdir(tmp_path) == ["saved"]


def test_what_is_there_is_not_replaced_unasked(classifier, tmp_path):
    (tmp_path / "kept").mkdir()
    with pytest.raises(ExportError, match="is there already"):
        export_run(str(classifier), "saved_model", str(tmp_path / "kept"))
    with pytest.raises(ExportError, match="other things than an export"):
        export_run(str(classifier), "saved_model", str(tmp_path / "kept"), force=True)


def test_a_missing_package_says_what_to_install():
    form = Onnx()
    form.writes_with = ("no_such_package",)
    with pytest.raises(
        ExportError, match=r"without no_such_package: pip install 'hortus\[export\]'"
    ):
        form.require()


@pytest.mark.parametrize(
    ("task", "data"),
    [
        ("classifier", "pictures"),
        ("detector", "scenes"),
        ("mask_detector", "scenes"),
        ("segmenter", "scenes"),
    ],
)
@pytest.mark.parametrize("form", ["onnx", "litert", "openvino"])
def test_other_formats_hold_a_model(form, task, data, request, tmp_path):
    try:
        FORMATS[form].require()
    except ExportError as error:
        pytest.skip(str(error))
    run, folder = request.getfixturevalue(task), request.getfixturevalue(data)
    images = [str(folder / "val" if data == "pictures" else folder / "images" / "val")]
    export = export_run(str(run), form, str(tmp_path / "model"), images=images)
    assert export.parity.images == 4 and export.path.endswith(FORMATS[form].ending)
    # The limit of an export: the same arithmetic in another order.
    assert export.parity.largest <= 1e-4
    found = Predictor.load(export.path).predict(images)
    expected = Predictor.from_run(run).predict(images)
    assert [len(each.to_dict()) for each in found] == [len(each.to_dict()) for each in expected]


def test_a_description_that_is_missing_or_broken_is_told(tmp_path):
    with pytest.raises(ExportError, match="is no export of hortus"):
        read_description(str(tmp_path))
    (tmp_path / "hortus_export.json").write_text(json.dumps({"hortus_export": 9}))
    with pytest.raises(ExportError, match="version 9"):
        read_description(str(tmp_path))


def test_differences_of_detections_do_not_depend_on_their_order():
    one = {
        "detection_boxes": np.array([[0, 0, 10, 10], [5, 5, 20, 20], [0, 0, 0, 0]], np.float32),
        "detection_scores": np.array([0.5, 0.5, 0], np.float32),
        "detection_classes": np.array([1, 2, 0]),
        "num_detections": np.array(2),
    }
    order = [1, 0, 2]
    other = {key: value[order] if value.ndim else value for key, value in one.items()}
    assert max(detection_differences(one, other).values()) == 0
    other["detection_boxes"] = other["detection_boxes"] + 2.0
    assert detection_differences(one, other)["detection_boxes"] == pytest.approx(0.1)
    assert detection_differences(one, {**one, "num_detections": np.array(1)}) == {
        "num_detections": 1.0
    }


def test_what_cannot_be_compared_is_infinitely_far():
    assert difference(np.zeros(2), np.zeros(3)) == float("inf")
    assert difference(np.zeros(2), np.array([0, np.nan])) == float("inf")
    assert difference(np.array([200.0]), np.array([201.0])) == pytest.approx(0.005)


def test_from_the_jax_engine(classifier, tmp_path):
    path = str(tmp_path / "saved")
    source = (
        "from hortus.vision import serving\n"
        f"print(serving.export_run({str(classifier)!r}, 'saved_model', {path!r}).parity.holds)"
    )
    assert run_under_engine("jax", source).strip().endswith("True")
    assert Predictor.load(path).class_names[0] == "circle"


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 100 kB; only who may mount has one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no `mount` here")
    if done.returncode:
        pytest.skip("mounting a small disk is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_an_export_into_a_full_disk_is_one_sentence(classifier, small_disk):
    with pytest.raises(disk.DiskFullError, match=rf"the disk of {small_disk} is full .*free some"):
        export_run(str(classifier), "saved_model", str(small_disk / "saved"))
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        tf.errors.ResourceExhaustedError(None, None, "x/variables: No space left on device"),
    ],
)
def test_a_full_disk_is_told_from_a_lack_of_memory(classifier, tmp_path, monkeypatch, error):
    def write(*_):
        raise error

    monkeypatch.setattr(type(FORMATS["saved_model"]), "write", write)
    with pytest.raises(disk.DiskFullError, match="is full"):
        export_run(str(classifier), "saved_model", str(tmp_path / "saved"))
    assert list(tmp_path.iterdir()) == []


def test_what_killed_exports_left_goes_at_the_next_one(classifier, tmp_path, monkeypatch):
    left = tmp_path / f".old.onnx.tmp@{socket.gethostname()}@{2**22 + 1}"  # no such process
    left.mkdir()
    (left / "old.onnx").write_bytes(b"half")
    other = tmp_path / "saved.replaced"
    other.mkdir()
    monkeypatch.setattr(exporting, "compare", lambda *_: Parity({"logits": 0.0}, 4))
    export_run(str(classifier), "saved_model", str(tmp_path / "saved"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["saved", "saved.replaced"]
