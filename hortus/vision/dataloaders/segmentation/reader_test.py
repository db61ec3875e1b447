"""Input of segmentation: folders of masks, panoptic files, records and data sets of others."""

import dataclasses
import io
import json
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from hortus import hyperparams
from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.dataloaders.conftest import make_example, write_records
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.segmentation import mask_files
from hortus.vision.dataloaders.segmentation import reader as segmentation_input
from hortus.vision.dataloaders.segmentation import tfds as segmentation_tfds

SIZES = [(16, 24), (20, 12), (16, 16)]


def png(values, has_palette=False):
    file, picture = io.BytesIO(), Image.fromarray(values)
    if has_palette:
        picture.putpalette(list(range(255, -1, -1)) * 3)
    picture.save(file, "PNG")
    return file.getvalue()


def make_mask(number, size):
    """The left half shows class 0, the right one class 1, with an ignored line between."""
    mask = np.zeros(size, np.uint8)
    mask[:, size[1] // 2 :] = 1
    mask[:, size[1] // 2] = 255
    return mask


def make_image(number, size):
    """Dark where class 0 is, bright where class 1 is."""
    image = np.full((*size, 3), 20 + number, np.uint8)
    image[:, size[1] // 2 :] = 230
    return image


@pytest.fixture
def folders(tmp_path):
    for name in ("images/train", "masks/train"):
        (tmp_path / name).mkdir(parents=True)
    for number, size in enumerate(SIZES):
        (tmp_path / f"images/train/{number}.png").write_bytes(png(make_image(number, size)))
        encoded = png(make_mask(number, size), has_palette=number == 1)
        (tmp_path / f"masks/train/{number}.png").write_bytes(encoded)
    (tmp_path / "classes.json").write_text('{"classes": ["dark", "bright"], "ignore_index": 255}')
    return tmp_path


def params(folder, **settings):
    return configs.DataConfig(
        **{
            "input_path": str(folder / "images/train"),
            "file_type": "masks",
            "global_batch_size": 1,
            "is_training": False,
            "drop_remainder": False,
            "seed": 1,
            **settings,
        }
    )


def batches(config, size=(16, 16), num_classes=2, count=3):
    reader = segmentation_input.build_reader(config, size, num_classes)
    return list(reader.read().take(count).as_numpy_iterator())


def agree(image, labels):
    """Whether bright pixels have class 1 and dark ones class 0, wherever one of them is told."""
    valid = labels["valid_masks"][..., 0]
    return (image.mean(axis=-1) > 0)[valid] == (labels["masks"][..., 0] == 1)[valid]


# ---- parsing --------------------------------------------------------------------------------


def test_evaluation_keeps_the_aspect_and_pads_with_what_does_not_count(folders):
    (image, labels), *_ = batches(params(folders))
    assert image.shape == (1, 16, 16, 3) and labels["masks"].shape == (1, 16, 16, 1)
    # 16 x 24 becomes 11 x 16; below is padding, which is 0 after the normalisation.
    assert not labels["valid_masks"][0, 11:].any() and (labels["masks"][0, 11:] == 255).all()
    assert (image[0, 11:] == 0).all()
    assert agree(image, labels).mean() > 0.9
    np.testing.assert_allclose(
        labels["image_info"][0], [[16, 24], [16, 16], [11 / 16, 2 / 3], [0, 0]]
    )


def test_evaluation_can_stretch(folders):
    _, labels = batches(params(folders, preserve_aspect_ratio=False))[0]
    assert (labels["masks"][0, :, 0] == 0).all() and (labels["masks"][0, :, -1] == 1).all()


def test_labels_can_keep_their_size(folders):
    settings = {"resize_eval_groundtruth": False, "groundtruth_padded_size": [24, 24]}
    for (image, labels), size in zip(batches(params(folders, **settings)), SIZES, strict=True):
        assert image.shape == (1, 16, 16, 3)
        expected = np.full((24, 24), 255)
        expected[: size[0], : size[1]] = make_mask(0, size)
        np.testing.assert_array_equal(labels["masks"][0, ..., 0], expected)
    with pytest.raises(tf.errors.OpError, match="larger than groundtruth_padded_size"):
        batches(params(folders, **{**settings, "groundtruth_padded_size": [8, 8]}))


def test_images_can_keep_their_size(folders):
    for (image, labels), size in zip(batches(params(folders), (None, None)), SIZES, strict=True):
        assert image.shape == (1, *size, 3) and labels["masks"].shape == (1, *size, 1)
    (image, labels), *_ = batches(params(folders, global_batch_size=3), (None, None))
    assert image.shape == (3, 20, 24, 3)
    assert not labels["valid_masks"][2, 16:].any()
    assert (labels["masks"][2, :, 16:] == 255).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"aug_scale_min": 0.5, "aug_scale_max": 2.0, "aug_policy": "panoptic_deeplab_policy"},
        {"crop_size": [8, 12], "output_size": [32, 32], "color_jitter": 0.1},
        {"crop_size": [8, 12], "centered_crop": True, "preserve_aspect_ratio": False},
    ],
)
def test_training_moves_images_and_masks_alike(folders, settings):
    config = params(folders, is_training=True, global_batch_size=6, **settings)
    (image, labels), *_ = batches(config, count=1)
    size = settings.get("crop_size", [16, 16])
    assert image.shape == (6, *size, 3) and labels["masks"].shape == (6, *size, 1)
    assert labels["valid_masks"].any(axis=(1, 2, 3)).all()
    # The ignored line hides what interpolation mixes, unless the image was enlarged much.
    assert agree(image, labels).mean() > 0.9


def test_a_policy_that_moves_pixels_is_refused(folders):
    with pytest.raises(DataError, match=r"v0 moves pixels by Rotate, ShearX.* such as panoptic_de"):
        batches(params(folders, is_training=True, aug_policy="v0"))


def test_the_position_can_be_saved_and_the_seed_determines_all(folders):
    config = params(folders, is_training=True, aug_scale_max=1.5, color_jitter=0.3)
    dataset = segmentation_input.build_reader(config, (16, 16), 2).read()
    expected = [image for image, _ in dataset.take(7).as_numpy_iterator()][4:]
    again = segmentation_input.build_reader(config, (16, 16), 2).read().start_at({"batches": 4})
    for (image, _), wanted in zip(again.take(3).as_numpy_iterator(), expected, strict=True):
        np.testing.assert_array_equal(image, wanted)


def test_what_does_not_fit_is_told_with_its_place(folders):
    (folders / "masks/train/1.png").write_bytes(png(make_mask(0, SIZES[1]) * 3))
    with pytest.raises(tf.errors.OpError, match=r"1\.png with .*numbers that are no class"):
        batches(params(folders))
    (folders / "masks/train/1.png").write_bytes(png(make_mask(0, (9, 9))))
    with pytest.raises(tf.errors.OpError, match=r"1\.png with .*different heights and widths"):
        batches(params(folders))
    settings = params(folders, skip_bad_records=True)
    assert len(batches(settings)) == 2


# ---- folders --------------------------------------------------------------------------------


def test_folders_tell_their_classes(folders):
    info = segmentation_input.describe(params(folders))
    assert info.class_names == ("dark", "bright") and info.num_examples == 3
    found = mask_files.read_mask_folders(str(folders / "images/train"))
    assert found.ignore_label == 255
    assert found.masks[0].split("/")[-3:] == ["masks", "train", "0.png"]


def test_masks_may_be_elsewhere_and_named_in_other_ways(folders):
    (folders / "masks").rename(folders / "labels")
    with pytest.raises(DataError, match=r"masks/train is not there"):
        batches(params(folders))
    config = params(folders, mask_path=str(folders / "labels/train"))
    assert len(batches(config)) == 3
    (folders / "classes.json").write_text('["a", "b"]')
    assert segmentation_input.describe(config).class_names == ("a", "b")
    (folders / "images").rename(folders / "photos")
    with pytest.raises(DataError, match="Set mask_path"):
        batches(params(folders, input_path=str(folders / "photos/train")))


def test_faults_of_folders_are_told(folders):
    (folders / "masks/train/2.png").unlink()
    with pytest.raises(DataError, match=r"1 of 3 images have no mask: .*2\.png should have"):
        batches(params(folders))
    (folders / "images/train/2.png").unlink()
    with pytest.raises(DataError, match=r"2 classes in the data .* set task.model.num_classes=2"):
        batches(params(folders), num_classes=1)
    (folders / "classes.json").write_text('{"classes": ["a"], "ignore_index": 7}')
    with pytest.raises(DataError, match=r"set task\.losses\.ignore_label=7"):
        batches(params(folders))
    (folders / "classes.json").write_text('{"names": 3}')
    with pytest.raises(DataError, match="expected a list of class names"):
        batches(params(folders))
    for file in (folders / "images/train").iterdir():
        file.unlink()
    with pytest.raises(DataError, match="there are no images"):
        batches(params(folders))


def test_masks_that_no_image_has(folders):
    (folders / "images/train/1.png").unlink()
    unused = mask_files.unused_masks(str(folders / "images/train"))
    assert [path.split("/")[-1] for path in unused] == ["1.png"]


def test_a_mix_of_folders(folders):
    images = {"a": str(folders / "images/train"), "b": str(folders / "images/train")}
    config = params(folders, input_path=hyperparams.Config(images))
    reader = segmentation_input.build_reader(config, (16, 16), 2)
    assert list(reader.sources) == ["a", "b"] and reader.info.num_examples == 6


def test_other_settings_that_do_not_fit_are_told(folders):
    with pytest.raises(DataError, match="file_type 'folder' is not for segmentation"):
        batches(params(folders, file_type="folder"))
    with pytest.raises(DataError, match="where is the data"):
        batches(params(folders, input_path=None))
    with pytest.raises(DataError, match="which size"):
        batches(params(folders, is_training=True), (None, None))
    feature = configs.DenseFeatureConfig(feature_name="depth")
    with pytest.raises(DataError, match="fields of records"):
        batches(params(folders, additional_dense_features=[feature]))


# ---- COCO -----------------------------------------------------------------------------------


@pytest.fixture
def panoptic(folders):
    annotations = []
    for number, size in enumerate(SIZES):
        ids = np.where(make_mask(number, size) == 1, 70000, 300)
        ids[0, 0] = 0
        colours = np.stack([ids % 256, ids // 256 % 256, ids // 65536], -1).astype(np.uint8)
        (folders / f"masks/train/{number}.png").write_bytes(png(colours))
        parts = [{"id": 70000, "category_id": 44}, {"id": 300, "category_id": 7}]
        annotations.append(
            {"image_id": number, "file_name": f"{number}.png", "segments_info": parts}
        )
    content = {
        "images": [{"id": number, "file_name": f"{number}.png"} for number in range(3)],
        "annotations": annotations,
        "categories": [{"id": 44, "name": "bright"}, {"id": 7, "name": "dark"}],
    }
    (folders / "panoptic.json").write_text(json.dumps(content))
    return folders


def test_panoptic_files(panoptic):
    config = params(
        panoptic, file_type="coco_panoptic", annotation_file=str(panoptic / "panoptic.json")
    )
    assert segmentation_input.describe(config).class_names == ("dark", "bright")
    for (image, labels), size in zip(batches(config, (None, None)), SIZES, strict=True):
        expected = (make_mask(0, size) == 1).astype(int)
        expected[0, 0] = 255
        np.testing.assert_array_equal(labels["masks"][0, ..., 0], expected)
        assert image.shape == (1, *size, 3)


def test_faults_of_panoptic_files_are_told(panoptic):
    path = panoptic / "panoptic.json"
    config = params(panoptic, file_type="coco_panoptic", annotation_file=str(path))
    content = json.loads(path.read_text())
    for change, message in (
        ({"categories": content["categories"][:1]}, "no category 7"),
        ({"images": content["images"][:2]}, "image_id 2 has an image that is not listed"),
        ({"annotations": []}, "no annotations in it"),
        (
            {"images": [{"id": number, "file_name": "../../a.png"} for number in range(3)]},
            "leads out of the folder",
        ),
    ):
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises(DataError, match=message):
            batches(config)
    path.write_text("{}")
    with pytest.raises(DataError, match="no images, annotations, categories"):
        batches(config)
    path.write_text("?")
    with pytest.raises(DataError, match="not a JSON file"):
        batches(config)


# ---- records and data sets of others --------------------------------------------------------


def record(number, size):
    return make_example(
        image__encoded=png(make_image(number, size)),
        image__depth=png(np.full(size, 128, np.uint8)),
        image__segmentation__class__encoded=png(make_mask(number, size)),
    )


def test_records(tmp_path):
    path = write_records(tmp_path / "data", [record(n, size) for n, size in enumerate(SIZES)])
    config = params(tmp_path, input_path=path, file_type="tfrecord")
    for image, labels in batches(config):
        assert agree(image, labels).mean() > 0.9
    depth = configs.DenseFeatureConfig(
        feature_name="image/depth", num_channels=1, mean=[0.0], stddev=[255.0]
    )
    (image, _), *_ = batches(dataclasses.replace(config, additional_dense_features=[depth]))
    assert image.shape == (1, 16, 16, 4)
    np.testing.assert_allclose(image[0, :11, :, 3], 128 / 255, rtol=1e-5)


def test_data_sets_of_tensorflow_datasets(tmp_path, monkeypatch):
    mask = np.array([[7, 33], [0, 26]], np.uint8)
    records = [make_example(image_left=png(make_image(0, (2, 2))), segmentation_label=png(mask))]
    path = write_records(tmp_path / "data", records)

    class Features(dict):
        def deserialize_example(self, record, decoders=None):
            assert set(decoders) == {"image_left", "segmentation_label"}
            keys = {key: tf.io.FixedLenFeature([], tf.string) for key in decoders}
            return tf.io.parse_single_example(record, keys)

    part = types.SimpleNamespace(filename=path, skip=0, take=1)
    split = types.SimpleNamespace(file_instructions=[part], num_examples=1)
    info = types.SimpleNamespace(features=Features(), splits={"train": split})
    module = types.ModuleType("tensorflow_datasets")
    module.builder = lambda name, data_dir: types.SimpleNamespace(info=info)
    module.decode = types.SimpleNamespace(SkipDecoding=object)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", module)
    config = params(
        tmp_path,
        input_path=None,
        file_type="tfrecord",
        tfds_name="cityscapes/semantic_segmentation",
        tfds_split="train",
    )
    ((_, labels),) = batches(config, (None, None), num_classes=19)
    np.testing.assert_array_equal(labels["masks"][0, ..., 0], [[0, 18], [255, 13]])
    with pytest.raises(DataError, match="known for cityscapes"):
        segmentation_tfds.features_of("mnist")
