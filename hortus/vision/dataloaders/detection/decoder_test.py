import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from hortus.testing import instance_files as files
from hortus.vision.configs import common, maskrcnn
from hortus.vision.data.records import detection as records
from hortus.vision.dataloaders.detection import decoder as detection_decoder
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.ops.segmentations import encode_bitmap, encode_labels


def task(path, file_type):
    return maskrcnn.MaskRCNNTask(
        model=maskrcnn.MaskRCNN(num_classes=4, input_size=[64, 96, 3], min_level=3, max_level=5),
        train_data=maskrcnn.DataConfig(
            input_path=path,
            file_type=file_type,
            global_batch_size=4,
            dtype="float32",
            drop_remainder=False,
            parser=maskrcnn.Parser(mask_crop_size=28, max_num_instances=5, max_mask_bytes=2000),
        ),
    )


def example(**changes):
    """A record of one image with its three objects."""
    masks = files.blobs(0)
    boxes = np.array([files.box_of(mask) for mask in masks], float)
    features = {
        "image/encoded": [tf.io.encode_png(np.zeros((*files.SIZE, 3), np.uint8)).numpy()],
        "image/object/class/label": [1, 2, 3],
        "image/object/mask": [tf.io.encode_png(mask[..., None]).numpy() for mask in masks],
    }
    for edge, values in zip(("xmin", "ymin"), boxes[:, :2].T / [[120], [80]], strict=True):
        features[f"image/object/bbox/{edge}"] = values.tolist()
    for edge, values in zip(
        ("xmax", "ymax"), (boxes[:, :2] + boxes[:, 2:]).T / [[120], [80]], strict=True
    ):
        features[f"image/object/bbox/{edge}"] = values.tolist()
    features |= {key.replace("__", "/"): value for key, value in changes.items()}

    def feature(values):
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    kept = {name: feature(values) for name, values in features.items() if values}
    return tf.train.Example(features=tf.train.Features(feature=kept)).SerializeToString()


def expected_codes():
    return [encode_bitmap(mask) for mask in files.blobs(0)]


def test_png_masks_become_run_lengths():
    decoder = detection_decoder.TfExampleDecoder(include_masks=True)
    decoded = decoder.decode(tf.constant(example()))
    assert decoded["groundtruth_masks"].numpy().tolist() == expected_codes()
    assert "groundtruth_masks" not in detection_decoder.TfExampleDecoder().decode(example())


def test_run_lengths_of_a_record_come_first():
    codes = [b"first", b"second", b"third"]
    decoder = detection_decoder.TfExampleDecoder(include_masks=True)
    decoded = decoder.decode(tf.constant(example(image__object__mask__rle=codes)))
    assert decoded["groundtruth_masks"].numpy().tolist() == codes


def test_the_threshold_cuts_soft_masks():
    soft = [tf.io.encode_png((200 * mask + 50)[..., None]).numpy() for mask in files.blobs(0)]
    config = common.DataDecoder()
    assert detection_decoder.build_decoder(config, True)._mask_threshold == 0.0
    decoder = detection_decoder.TfExampleDecoder(include_masks=True, mask_threshold=100)
    decoded = decoder.decode(tf.constant(example(image__object__mask=soft)))
    assert decoded["groundtruth_masks"].numpy().tolist() == expected_codes()


def test_a_record_that_lacks_masks_says_so():
    decoder = detection_decoder.TfExampleDecoder(include_masks=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a mask for each of its objects"):
        decoder.decode(tf.constant(example(image__object__mask=[])))


def test_an_image_without_objects_needs_no_masks():
    empty = {
        f"image__object__{key}": []
        for key in ("mask", "class__label", "bbox__xmin", "bbox__xmax", "bbox__ymin", "bbox__ymax")
    }
    decoder = detection_decoder.TfExampleDecoder(include_masks=True)
    decoded = decoder.decode(tf.constant(example(**empty)))
    assert decoded["groundtruth_masks"].shape == (0,)


@pytest.mark.parametrize("without_codes", [False, True])
def test_what_is_written_as_records_is_read_again(tmp_path, without_codes):
    config = task(files.write_coco(tmp_path), "coco")
    written = list(records.examples(config.train_data, config))
    with tf.io.TFRecordWriter(str(tmp_path / "records")) as writer:
        for record in written:
            parsed = tf.train.Example.FromString(record)
            assert len(parsed.features.feature["image/object/mask"].bytes_list.value) == 3
            if without_codes:
                del parsed.features.feature["image/object/mask/rle"]
            writer.write(parsed.SerializeToString())
    batches = [
        next(iter(detection_input.build_dataset(each.train_data, each.model)))[1]
        for each in (config, task(str(tmp_path / "records"), "tfrecord"))
    ]
    expected, found = batches
    assert expected["masks"].numpy().any()
    np.testing.assert_array_equal(found["masks"], expected["masks"])
    for key in ("areas", "mask_lengths"):
        values = expected["groundtruths"][key]
        np.testing.assert_array_equal(found["groundtruths"][key][:, : values.shape[1]], values)
    length = expected["groundtruths"]["mask_codes"].shape[1]
    np.testing.assert_array_equal(
        found["groundtruths"]["mask_codes"][:, :length], expected["groundtruths"]["mask_codes"]
    )


# ---- TensorFlow Datasets --------------------------------------------------------------------


def tfds_features(**objects):
    masks = files.blobs(0)
    boxes = np.array([files.box_of(mask) for mask in masks], np.float32)
    corners = np.concatenate([boxes[:, 1::-1], boxes[:, 1::-1] + boxes[:, :1:-1]], axis=1)
    return {
        "image": tf.constant(b""),
        "image/id": tf.constant(7, tf.int64),
        "objects": {
            "bbox": tf.constant(corners / np.array([80, 120, 80, 120], np.float32)),
            "label": tf.constant([0, 1, 2], tf.int64),
            **objects,
        },
    }


def test_masks_of_tensorflow_datasets_are_bitmaps_or_run_lengths():
    decode = detection_decoder.tfds_decoder("mine", 4, include_masks=True)
    bitmaps = tf.constant(files.blobs(0)[..., None])
    for objects in ({"mask": bitmaps}, {"rle": tf.constant(expected_codes())}):
        decoded = decode(tfds_features(**objects))
        assert decoded["groundtruth_masks"].numpy().tolist() == expected_codes()
    with pytest.raises(DataError, match="mine has no masks: its objects have bbox, label"):
        decode(tfds_features())


def test_things_of_the_panoptic_set_are_objects():
    numbers = np.zeros(files.SIZE, np.int32)
    for number, mask in zip((70000, 5, 300), files.blobs(0), strict=True):
        numbers[mask > 0] = number
    colours = np.stack([numbers % 256, numbers // 256 % 256, numbers // 65536], axis=-1)
    features = tfds_features()
    objects = features.pop("objects")
    objects |= {"id": tf.constant([70000, 5, 300]), "label": tf.constant([0, 100, 79], tf.int64)}
    features |= {
        "panoptic_objects": objects,
        "panoptic_image": tf.constant(colours.astype(np.uint8)),
    }
    decoded = detection_decoder.tfds_decoder("coco/2017_panoptic", 91, True)(features)
    assert decoded["groundtruth_classes"].numpy().tolist() == [1, 90]
    expected = encode_labels(numbers, [70000, 300])
    assert decoded["groundtruth_masks"].numpy().tolist() == expected


def test_every_kind_of_file_gives_the_same_masks(tmp_path):
    paths = {
        "coco": files.write_coco(tmp_path / "coco", count=3),
        "voc": files.write_voc(tmp_path / "voc", count=4),
        "instance_masks": files.write_instance_masks(tmp_path / "folder", count=3),
    }
    batches = {}
    for kind, path in paths.items():
        config = task(path, kind)
        batches[kind] = next(iter(detection_input.build_dataset(config.train_data, config.model)))
        assert Image.open(next(tmp_path.rglob("0.png"))).size == (120, 80)
    images, expected = batches["coco"]
    for other_images, labels in (batches["voc"], batches["instance_masks"]):
        np.testing.assert_array_equal(other_images, images)
        np.testing.assert_array_equal(labels["masks"], expected["masks"])
        np.testing.assert_allclose(labels["boxes"], expected["boxes"], atol=1e-4)
        np.testing.assert_array_equal(labels["areas"], expected["areas"])
        np.testing.assert_array_equal(
            labels["groundtruths"]["mask_codes"], expected["groundtruths"]["mask_codes"]
        )
