"""Input of image classification: records or image files -> (image, label)."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, Optional

import tensorflow as tf

from hortus.vision.configs import image_classification as configs
from hortus.vision.dataloaders import image_files, preprocess
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import SEED, InputReader
from hortus.vision.dataloaders.randomness import Rng

ORIGIN = "origin"
"""Key of the file that an example came from."""
RECORD_TYPES = ("tfrecord", "tfrecord_compressed")
FILE_TYPES = (*RECORD_TYPES, "folder", "csv")


@dataclasses.dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is read."""

    class_names: tuple[str, ...] = ()
    """Names of the classes; empty where the data does not tell."""
    num_examples: Optional[int] = None


class Decoder:
    """A serialised `tf.train.Example` -> its image, still encoded, and its class or classes.

    Args:
        image_field_key: feature with the encoded image.
        label_field_key: feature with the class, or with several if `is_multilabel`.
        is_multilabel: whether an image can have any number of classes.
    """

    def __init__(
        self,
        image_field_key: str = "image/encoded",
        label_field_key: str = "image/class/label",
        is_multilabel: bool = False,
    ):
        label = (
            tf.io.VarLenFeature(tf.int64) if is_multilabel else tf.io.FixedLenFeature([], tf.int64)
        )
        self._features = {
            image_field_key: tf.io.FixedLenFeature([], tf.string),
            label_field_key: label,
        }

    def decode(self, serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        """The features by their keys."""
        return tf.io.parse_single_example(serialized, self._features)


class Parser:
    """An encoded image and its class -> the image and the label of a batch.

    Args:
        output_size: height and width of the images.
        num_classes: length of the label vectors of a multi-label task.
        params: which crops and augmentations to apply, and of which type images are.
    """

    def __init__(self, output_size: Sequence[int], num_classes: int, params: configs.DataConfig):
        self.output_size = tuple(output_size)
        self.num_classes = num_classes
        self.params = params

    def parse(self, example: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """Image [height, width, 3] of the config's type, and label: a number or a vector."""
        params = self.params
        encoded = example[params.image_field_key]
        if params.is_training:
            image = self._train_image(encoded, Rng(example[SEED]))
        else:
            image = self._eval_image(encoded)
        image = tf.cast(image, params.dtype)
        image.set_shape([*self.output_size, 3])
        return image, self._label(example[params.label_field_key])

    def _train_image(self, encoded: tf.Tensor, rng: Rng) -> tf.Tensor:
        params = self.params
        if params.aug_crop:
            area = params.crop_area_range or (0.08, 1.0)
            image = preprocess.decode_and_random_crop(encoded, area_range=area, seed=rng.seed())
        else:
            image = preprocess.decode_image(encoded)
        if params.aug_rand_hflip:
            image, _, _ = preprocess.random_horizontal_flip(image, seed=rng.seed())
        if params.color_jitter:
            strength = params.color_jitter
            image = preprocess.color_jitter(image, strength, strength, strength, seed=rng.seed())
        image = self._resize(image)
        return preprocess.normalize_image(image)

    def _eval_image(self, encoded: tf.Tensor) -> tf.Tensor:
        if self.params.aug_crop:
            fraction = self.params.center_crop_fraction or 1.0
            image = preprocess.decode_and_center_crop(encoded, fraction)
        else:
            image = preprocess.decode_image(encoded)
        return preprocess.normalize_image(self._resize(image))

    def _resize(self, image: tf.Tensor) -> tf.Tensor:
        return tf.image.resize(image, self.output_size, method=self.params.tf_resize_method)

    def _label(self, label: tf.Tensor) -> tf.Tensor:
        if not self.params.is_multilabel:
            return tf.cast(label, tf.int32)
        classes = tf.sparse.to_dense(label) if isinstance(label, tf.SparseTensor) else label
        return tf.reduce_max(tf.one_hot(tf.reshape(classes, [-1]), self.num_classes), axis=0)


def describe(params: configs.DataConfig) -> DatasetInfo:
    """What the files tell of a data set, without reading it."""
    if params.file_type in RECORD_TYPES or not params.input_path:
        return DatasetInfo()
    images = _read_image_files(params)
    return DatasetInfo(images.class_names, len(images))


def build_dataset(
    params: configs.DataConfig,
    output_size: Sequence[int],
    num_classes: int,
    input_context: Optional[Any] = None,
    postprocess_fn: Optional[Any] = None,
) -> tf.data.Dataset:
    """The dataset of batches (images, labels).

    Args:
        params: what to read and how.
        output_size: height and width of the images.
        num_classes: classes of the model; more in the data are an error.
        input_context: which share of the data this host reads.
        postprocess_fn: applied to each training batch, `(images, labels, seed)`.
    """
    parser = Parser(output_size, num_classes, params)
    if params.file_type not in FILE_TYPES:
        raise DataError(
            f"file_type {params.file_type!r} is not for classification; expected one of "
            f"{', '.join(FILE_TYPES)}"
        )
    if params.file_type in RECORD_TYPES:
        decoder = Decoder(params.image_field_key, params.label_field_key, params.is_multilabel)
        reader = InputReader(params, decoder.decode, parser.parse, postprocess_fn=postprocess_fn)
        return reader.read(input_context)
    images = _read_image_files(params)
    if len(images.class_names) > num_classes:
        raise DataError(
            f"{params.input_path}: {len(images.class_names)} classes in the data, but the model "
            f"has {num_classes}: set task.model.num_classes={len(images.class_names)}"
        )
    key = params.image_field_key
    reader = InputReader(
        params,
        parser_fn=parser.parse,
        examples=image_files.as_dataset(images, key, params.label_field_key, ORIGIN),
        load_fn=lambda example: image_files.load_image(example, key),
        postprocess_fn=postprocess_fn,
    )
    return reader.read(input_context)


def _read_image_files(params: configs.DataConfig) -> image_files.LabelledImages:
    paths = params.input_path
    paths = paths.split(",") if isinstance(paths, str) else list(paths)
    paths = [os.path.expanduser(path.strip()) for path in paths if path.strip()]
    if not paths:
        raise DataError("input_path is empty: where is the data?")
    read = image_files.read_folders if params.file_type == "folder" else image_files.read_csv
    return read(paths)
