import numpy as np
import pytest
import tensorflow as tf

from hortus.testing import shared_file
from hortus.vision.configs import image_classification as configs
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.classification import reader as classification_input
from hortus.vision.dataloaders.classification.reader import Decoder, Parser
from hortus.vision.dataloaders.conftest import make_example, make_image, write_records
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.position_test import check_restores

SEED = tf.constant([1, 2], tf.int64)
PLAIN = {"aug_crop": False, "aug_rand_hflip": False}


def encoded(number=0, encode=tf.io.encode_png, size=(24, 32)):
    return {"image/encoded": encode(make_image(number, size)), "image/class/label": tf.constant(3)}


def parse(is_training=True, seed=SEED, example=None, size=(16, 20), num_classes=10, **settings):
    params = configs.DataConfig({"is_training": is_training, **settings})
    parser = Parser(size, num_classes, params).parse_fn(is_training)
    example = encoded() if example is None else example
    return parser(example, seed) if is_training else parser(example)


def settings_of(path, **settings):
    defaults = {"input_path": str(path), "global_batch_size": 5, "seed": 1, "is_training": False}
    return configs.DataConfig({**defaults, **settings})


def read(path, size=(16, 20), num_classes=10, **settings):
    reader = classification_input.build_reader(settings_of(path, **settings), size, num_classes)
    return reader, reader.read()


# ---- parser ---------------------------------------------------------------------------------


def test_evaluation_is_crop_resize_normalise():
    image, label = parse(is_training=False)
    cropped = preprocess.center_crop_image(tf.constant(make_image(0)), 0.875)
    expected = preprocess.normalize_image(tf.image.resize(cropped, (16, 20)))
    np.testing.assert_array_equal(image, expected)
    assert label.dtype == tf.int32 and label == 3


@pytest.mark.parametrize("is_training", [False, True])
def test_without_crop_the_whole_image_is_resized(is_training):
    image, _ = parse(is_training, **PLAIN)
    expected = preprocess.normalize_image(tf.image.resize(make_image(0), (16, 20)))
    np.testing.assert_array_equal(image, expected)


def test_the_fraction_of_the_centre_crop():
    image, _ = parse(is_training=False, center_crop_fraction=0.5, size=(12, 12))
    expected = preprocess.normalize_image(make_image(0)[6:18, 10:22])
    np.testing.assert_allclose(image, expected, atol=1e-6)


def test_training_is_determined_by_its_seed():
    first, again, other = (parse(seed=tf.constant([1, n], tf.int64))[0] for n in (2, 2, 3))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_random_crops_keep_to_their_area():
    # A white dot per pixel of the image: the brightness of the crop tells its size.
    dots = np.zeros([64, 64, 3], np.uint8)
    dots[32, 32] = 255
    example = {**encoded(), "image/encoded": tf.io.encode_png(dots)}
    whole = {"crop_area_range": (1.0, 1.0), "aug_rand_hflip": False, "size": (64, 64)}
    for i in range(5):
        image, _ = parse(example=example, seed=tf.constant([0, i], tf.int64), **whole)
        assert image.shape == [64, 64, 3]
        # Aspect ratios of 3/4 to 4/3 do not fit into the whole: then it is the image itself.
        np.testing.assert_array_equal(image, preprocess.normalize_image(dots))


def test_half_of_the_images_are_mirrored():
    plain = parse(**PLAIN)[0].numpy()
    mirrored = {"aug_crop": False, "aug_rand_hflip": True}
    run = tf.function(lambda i: parse(seed=tf.stack([tf.constant(0, tf.int64), i]), **mirrored)[0])
    images = [run(tf.constant(i, tf.int64)).numpy() for i in range(60)]
    same = np.mean([np.array_equal(image, plain) for image in images])
    flipped = np.mean([np.allclose(image, plain[:, ::-1], atol=1e-5) for image in images])
    assert same + flipped == 1 and 0.2 < flipped < 0.8


CHANGES = {
    "color_jitter": {"color_jitter": 0.4},
    "randaug": {"aug_type": {"type": "randaug"}},
    "autoaug": {"aug_type": {"type": "autoaug", "autoaug": {"augmentation_name": "svhn"}}},
    "three_augment": {"three_augment": True},
    "random_erasing": {"random_erasing": {"probability": 1.0}},
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_augmentation_changes_training_and_nothing_else(name):
    plain = parse(**PLAIN)[0]
    settings = {**PLAIN, **CHANGES[name]}
    run = tf.function(lambda i: parse(seed=tf.stack([tf.constant(0, tf.int64), i]), **settings)[0])
    images = [run(tf.constant(i, tf.int64)) for i in range(8)]
    assert len({image.numpy().tobytes() for image in images}) > 1
    assert all(image.shape == plain.shape for image in images)
    np.testing.assert_array_equal(parse(is_training=False, **settings)[0], plain)


def test_erasing_comes_after_normalising():
    erased, _ = parse(random_erasing={"probability": 1.0, "min_area": 0.3}, **PLAIN)
    changed = erased.numpy()[np.any(erased != parse(**PLAIN)[0], axis=-1)]
    assert abs(changed.std() - 1.0) < 0.2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_types_of_images(dtype):
    for is_training in (False, True):
        assert parse(is_training, dtype=dtype)[0].dtype == dtype


def test_the_interpolation_is_chosen():
    bicubic, _ = parse(is_training=False, tf_resize_method="bicubic")
    assert np.any(bicubic != parse(is_training=False)[0])


@pytest.mark.parametrize("encode", [tf.io.encode_jpeg, tf.io.encode_png])
@pytest.mark.parametrize("only_jpeg", [True, False])
def test_all_kinds_of_images_are_read(encode, only_jpeg):
    image, _ = parse(is_training=False, example=encoded(0, encode), decode_jpeg_only=only_jpeg)
    assert image.shape == [16, 20, 3]


def test_several_classes_are_a_vector():
    example = {**encoded(), "image/class/label": tf.constant([1, 3], tf.int64)}
    settings = {"is_multilabel": True, "num_classes": 5, "example": example}
    for is_training in (False, True):
        assert parse(is_training, **settings)[1].numpy().tolist() == [0, 1, 0, 1, 0]
    settings["example"] = {**encoded(), "image/class/label": tf.constant([], tf.int64)}
    assert parse(False, **settings)[1].numpy().tolist() == [0] * 5


# ---- records --------------------------------------------------------------------------------


def record(number, label, image_key="image__encoded", label_key="image__class__label"):
    image = tf.io.encode_jpeg(make_image(number)).numpy()
    return make_example(**{image_key: image, label_key: label})


def test_records_of_other_fields(tmp_path):
    path = write_records(tmp_path / "a", [record(i, i % 3, "pixels", "kind") for i in range(5)])
    _, dataset = read(path, image_field_key="pixels", label_field_key="kind")
    [(images, labels)] = list(dataset)
    assert images.shape == [5, 16, 20, 3] and labels.numpy().tolist() == [0, 1, 2, 0, 1]


def test_records_of_several_classes(tmp_path):
    labels = [[0, 2], [], [1], [1, 2], [0]]
    path = write_records(tmp_path / "a", [record(i, label) for i, label in enumerate(labels)])
    _, dataset = read(path, num_classes=3, is_multilabel=True)
    [(_, vectors)] = list(dataset)
    assert vectors.numpy().astype(int).tolist() == [
        [1, 0, 1],
        [0, 0, 0],
        [0, 1, 0],
        [0, 1, 1],
        [1, 0, 0],
    ]


def test_a_record_without_the_field_is_named(tmp_path):
    records = [record(0, 0), record(1, 0), record(2, 0, label_key="label")]
    path = write_records(tmp_path / "a", records)
    _, dataset = read(path, drop_remainder=False)
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        list(dataset)
    assert f"{path}, record 2" in str(error.value)
    assert "the record has the features image/encoded, label" in str(error.value)


def test_a_label_beyond_the_classes_is_named(tmp_path):
    path = write_records(tmp_path / "a", [record(0, 0), record(1, 7)])
    _, dataset = read(path, num_classes=7, drop_remainder=False)
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        list(dataset)
    assert f"{path}, record 1" in str(error.value)
    assert "not a number from 0 to 6, but" in str(error.value)


def test_the_decoder_reads_the_fields():
    decoded = Decoder("a", "b").decode(make_example(a=b"x", b=4))
    assert decoded["a"] == b"x" and decoded["b"] == 4


# ---- folders and CSV files ------------------------------------------------------------------


def test_a_folder_is_read_in_order_with_its_classes(image_folder):
    reader, dataset = read(image_folder, file_type="folder")
    assert reader.info.class_names == ("ant", "bee", "cat") and reader.info.num_examples == 15
    labels = np.concatenate([labels for _, labels in dataset])
    assert labels.tolist() == [0] * 5 + [1] * 4 + [2] * 6
    assert (
        classification_input.describe(settings_of(image_folder, file_type="folder")) == reader.info
    )


def test_classes_of_the_training_data_count(image_folder, tmp_path):
    (tmp_path / "val" / "cat").mkdir(parents=True)
    (image_folder / "cat" / "0.png").rename(tmp_path / "val" / "cat" / "0.png")
    names = ("ant", "bee", "cat")
    params = settings_of(tmp_path / "val", file_type="folder", global_batch_size=1)
    [(_, labels)] = list(classification_input.build_dataset(params, (8, 8), 3, class_names=names))
    assert labels.numpy().tolist() == [2]


def test_a_mix_of_folders_has_its_classes_in_common(image_folder, tmp_path):
    (tmp_path / "more" / "dog").mkdir(parents=True)
    (image_folder / "cat" / "0.png").rename(tmp_path / "more" / "dog" / "0.png")
    path = {"a": str(tmp_path / "more"), "b": str(image_folder)}
    params = settings_of("", file_type="folder", drop_remainder=False).replace(input_path=path)
    reader = classification_input.build_reader(params, (8, 8), 4)
    assert reader.info.class_names == ("ant", "bee", "cat", "dog")
    assert reader.info.num_examples == 15
    labels = np.concatenate([labels for _, labels in reader.read()])
    assert labels.tolist() == [3] + [0] * 5 + [1] * 4 + [2] * 5


def test_more_classes_than_the_model_has_are_told(image_folder):
    with pytest.raises(DataError, match=r"3 classes .*ant, bee, cat.*num_classes=3"):
        read(image_folder, num_classes=2, file_type="folder")


def test_a_csv_file_is_read(image_folder):
    (image_folder / "labels.csv").write_text("cat/0.png,b\nant/1.jpg,a\n")
    _, dataset = read(image_folder / "labels.csv", file_type="csv", drop_remainder=False)
    [(images, labels)] = list(dataset)
    assert images.shape == [2, 16, 20, 3] and labels.numpy().tolist() == [1, 0]


def test_an_unknown_file_type_is_told(image_folder):
    with pytest.raises(DataError, match="'coco' is not for classification; expected one of tfrec"):
        read(image_folder, file_type="coco")


@pytest.mark.parametrize("content", [b"", b"no image", None], ids=["empty", "text", "cut off"])
def test_a_broken_image_names_its_file(image_folder, content):
    path = image_folder / "bee" / "1.jpg"
    path.write_bytes(path.read_bytes()[:300] if content is None else content)
    _, dataset = read(image_folder, file_type="folder")
    with pytest.raises(tf.errors.InvalidArgumentError, match=str(path)):
        list(dataset)
    reader, dataset = read(
        image_folder, file_type="folder", skip_bad_records=True, drop_remainder=False
    )
    assert sum(len(labels) for _, labels in dataset) == 14
    assert list(reader.bad_records.reasons) == [str(path)]


# ---- training -------------------------------------------------------------------------------

FULL = {
    "is_training": True,
    "aug_type": {"type": "randaug", "randaug": {"magnitude_std": 0.5}},
    "random_erasing": {},
    "color_jitter": 0.4,
    "mixup_and_cutmix": {},
}


def test_mixing_gives_soft_labels(image_folder):
    _, dataset = read(image_folder, num_classes=3, file_type="folder", **FULL)
    images, labels = next(iter(dataset))
    assert images.shape == [5, 16, 20, 3] and labels.shape == [5, 3]
    np.testing.assert_allclose(tf.reduce_sum(labels, axis=1), 1.0, atol=1e-5)


def test_evaluation_is_not_mixed(image_folder):
    _, dataset = read(image_folder, file_type="folder", **{**FULL, "is_training": False})
    assert next(iter(dataset))[1].shape == [5]


def test_repeated_augmentation_has_copies_that_differ(image_folder):
    _, dataset = read(
        image_folder,
        file_type="folder",
        is_training=True,
        repeated_augment=3,
        global_batch_size=6,
    )
    images, labels = next(iter(dataset))
    labels = labels.numpy().reshape(2, 3)
    assert np.all(labels == labels[:, :1])
    assert len({image.numpy().tobytes() for image in images}) == 6


def test_full_training_input_can_be_resumed(image_folder, tmp_path):
    (tmp_path / "checkpoint").mkdir()
    check_restores(
        lambda: read(image_folder, num_classes=3, file_type="folder", **FULL)[1],
        str(tmp_path / "checkpoint"),
        before=4,
        after=6,
    )


def test_real_images(tmp_path):
    root = shared_file("datasets/cls_clothing/val")
    reader, dataset = read(root, size=(64, 64), file_type="folder", drop_remainder=False)
    assert len(reader.info.class_names) == 10 and reader.info.num_examples == 290
    images, labels = zip(*dataset, strict=True)
    assert sum(len(part) for part in labels) == 290
    # Normalised by the statistics of natural images.
    values = np.concatenate(images)
    assert abs(values.mean()) < 1.5 and 0.5 < values.std() < 2.0


@pytest.mark.parametrize("size", [(), (None, None), (16, None)])
def test_images_need_a_size(image_folder, size):
    params = settings_of(image_folder, file_type="folder")
    with pytest.raises(DataError, match=r"fixed height and width.*task\.model\.input_size"):
        classification_input.build_reader(params, size, 3)
