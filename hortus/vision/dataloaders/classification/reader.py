"""Input of image classification: records or image files -> (image, label)."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf

from hortus.vision.configs import image_classification as configs
from hortus.vision.dataloaders import (
    augment,
    decoder,
    file_types,
    image_files,
    parser,
    preprocess,
)
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.randomness import Rng
from hortus.vision.dataloaders.sources.base import Source
from hortus.vision.dataloaders.sources.factory import by_name
from hortus.vision.dataloaders.sources.record_files import COMPRESSIONS


@file_types.register_classification_files("folder")
def _read_folders(input_path: Any, params: configs.DataConfig) -> image_files.LabelledImages:
    """A folder with one sub-folder per class."""
    return image_files.read_folders(input_path)


@file_types.register_classification_files("csv")
def _read_csv(input_path: Any, params: configs.DataConfig) -> image_files.LabelledImages:
    """Lines of an image's path and its class."""
    return image_files.read_csv(input_path, params.is_multilabel)


class Decoder(decoder.Decoder):
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
            tf.io.RaggedFeature(tf.int64) if is_multilabel else tf.io.FixedLenFeature([], tf.int64)
        )
        self._features = {
            image_field_key: tf.io.FixedLenFeature([], tf.string),
            label_field_key: label,
        }

    @tf.autograph.experimental.do_not_convert
    def decode(self, serialized_example: tf.Tensor) -> dict[str, tf.Tensor]:
        return tf.io.parse_single_example(serialized_example, self._features)


class Parser(parser.Parser):
    """An encoded image and its class -> the image and the label of a batch.

    Args:
      output_size: height and width of the images.
      num_classes: classes of the model; a higher label is an error. 0 for any.
      params: which crops and augmentations to apply, and of which type images are.
    """

    def __init__(self, output_size: Sequence[int], num_classes: int, params: configs.DataConfig):
        self.output_size = tuple(output_size)
        self.num_classes = num_classes
        self.params = params
        self._augmentation = augment.build_image_augmentation(params.aug_type)
        if params.three_augment:
            self._augmentation = augment.build_three_augment()
        self._erasing = augment.build_random_erasing(params.random_erasing)

    @tf.autograph.experimental.do_not_convert
    def _parse_train_data(
        self, decoded_tensors: dict[str, tf.Tensor], seed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        params, rng = self.params, Rng(seed)
        encoded = decoded_tensors[params.image_field_key]
        if params.aug_crop:
            area = params.crop_area_range or (0.08, 1.0)
            image = preprocess.decode_and_random_crop(encoded, area_range=area, seed=rng.seed())
        else:
            image = preprocess.decode_image(encoded)
        if params.aug_rand_hflip:
            image, _, _ = preprocess.random_horizontal_flip(image, seed=rng.seed())
        image = self._resize(image)
        if params.color_jitter:
            strength = params.color_jitter
            image = preprocess.color_jitter(image, strength, strength, strength, seed=rng.seed())
        if self._augmentation is not None:
            image = self._augmentation.distort(image, seed=rng.seed())
        image = preprocess.normalize_image(image)
        if self._erasing is not None:
            image = self._erasing.distort(image, seed=rng.seed())
        return tf.cast(image, params.dtype), self._label(decoded_tensors)

    @tf.autograph.experimental.do_not_convert
    def _parse_eval_data(
        self, decoded_tensors: dict[str, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        image = self.inference_image(decoded_tensors[self.params.image_field_key])
        return image, self._label(decoded_tensors)

    def inference_image(self, encoded: tf.Tensor) -> tf.Tensor:
        """The image as evaluation and prediction see it, from its encoded bytes."""
        params = self.params
        if params.aug_crop:
            fraction = params.center_crop_fraction or 1.0
            image = preprocess.decode_and_center_crop(encoded, fraction)
        else:
            image = preprocess.decode_image(encoded)
        return self._finished(image)

    def inference_pixels(self, images: tf.Tensor) -> tf.Tensor:
        """The same of pixels, uint8 [batch, height, width, 3]: images of one size."""
        params = self.params
        if params.aug_crop:
            size = tf.shape(images)[1:3]
            window = preprocess.center_window(size, params.center_crop_fraction or 1.0)
            top, left, height, width = tf.unstack(window)
            images = images[:, top : top + height, left : left + width, :]
        return self._finished(images)

    def _finished(self, images: tf.Tensor) -> tf.Tensor:
        return tf.cast(preprocess.normalize_image(self._resize(images)), self.params.dtype)

    def _resize(self, image: tf.Tensor) -> tf.Tensor:
        image = tf.image.resize(image, self.output_size, method=self.params.tf_resize_method)
        image.set_shape([*image.shape[:-3], *self.output_size, 3])
        return image

    def _label(self, decoded_tensors: dict[str, tf.Tensor]) -> tf.Tensor:
        label = tf.cast(decoded_tensors[self.params.label_field_key], tf.int32)
        if self.num_classes:
            is_known = tf.reduce_all((label >= 0) & (label < self.num_classes))
            text = f"the label is not a number from 0 to {self.num_classes - 1}, but"
            with tf.control_dependencies([tf.debugging.Assert(is_known, [text, label])]):
                label = tf.identity(label)
        if not self.params.is_multilabel:
            return label
        vectors = tf.one_hot(tf.reshape(label, [-1]), self.num_classes)
        return tf.minimum(tf.reduce_sum(vectors, axis=0), 1.0)


def describe(params: configs.DataConfig) -> DatasetInfo:
    """What the files tell of a data set, without reading it."""
    if not params.input_path and not params.tfds_name:
        return DatasetInfo()
    return build_reader(params, (1, 1), 0).info


def names_of_training(
    params: configs.DataConfig, train_data: Optional[configs.DataConfig]
) -> tuple[str, ...]:
    """The classes of the training data, which give those of other data their numbers.

    Empty for the training data itself, and where there is none or it does not name its classes.
    """
    if train_data is None or params is train_data or params == train_data:
        return ()
    return describe(train_data).class_names


def build_dataset(
    params: configs.DataConfig,
    output_size: Sequence[int],
    num_classes: int,
    input_context: Optional[Any] = None,
    class_names: Sequence[str] = (),
) -> tf.data.Dataset:
    """The dataset of batches (images, labels); see `build_reader`."""
    return build_reader(params, output_size, num_classes, class_names).read(input_context)


def build_reader(
    params: configs.DataConfig,
    output_size: Sequence[Optional[int]],
    num_classes: int,
    class_names: Sequence[str] = (),
) -> InputReader:
    """The reader of batches (images, labels), which also knows the classes and broken examples.

    Images are normalised [batch, height, width, 3] of the config's type. Labels are int32 [batch],
    or vectors [batch, num_classes] where images have several classes or are mixed.

    Args:
      params: what to read and how.
      output_size: height and width of the images.
      num_classes: classes of the model; more in the data are an error. 0 for any.
      class_names: the classes in the order of their numbers, as the training data has them; empty
        takes those of this data. For image files, where classes have no numbers of their own.
    """
    size = [side for side in output_size if side]
    if len(size) != 2:
        raise DataError(
            f"images need a fixed height and width to make batches of, got {list(output_size)}: "
            "set task.model.input_size, for instance to [224,224,3]"
        )
    parse = Parser(size, num_classes, params).parse_fn(bool(params.is_training))
    mix = _mixing(params, num_classes)
    known = file_types.names(file_types.CLASSIFICATION)
    if params.file_type not in known:
        raise DataError(
            f"file_type {params.file_type!r} is not for classification; expected one of "
            f"{', '.join(known)}"
        )
    if params.tfds_name or params.file_type in COMPRESSIONS:
        if params.tfds_name:
            params = _with_encoded_images(params)
            decode: Callable[..., Any] = _tfds_decoder(params)
        else:
            decode = Decoder(
                params.image_field_key, params.label_field_key, params.is_multilabel
            ).decode
        return InputReader(params, decoder_fn=decode, parser_fn=parse, postprocess_fn=mix)
    sources = _image_file_sources(params, num_classes, class_names)
    return InputReader(params, parser_fn=parse, postprocess_fn=mix, sources=sources)


def _mixing(params: configs.DataConfig, num_classes: int) -> Optional[Callable[..., Any]]:
    if not params.is_training or params.mixup_and_cutmix is None or not num_classes:
        return None
    return augment.MixupAndCutmix(num_classes, **params.mixup_and_cutmix.as_dict()).distort


def _image_file_sources(
    params: configs.DataConfig, num_classes: int, class_names: Sequence[str]
) -> dict[str, Source]:
    """The sources of image files; those of a mix have their classes in common."""
    read = file_types.CLASSIFICATION[params.file_type]
    sets = {name: read(path, params) for name, path in by_name(params.input_path).items()}
    names = tuple(class_names)
    if not names:
        found = {name for images in sets.values() for name in images.class_names}
        first = next(iter(sets.values())).class_names
        names = first if found == set(first) else tuple(sorted(found))
    if num_classes and len(names) > num_classes:
        raise DataError(
            f"{len(names)} classes in the data ({', '.join(names[:10])}"
            f"{', ...' if len(names) > 10 else ''}), but the model has {num_classes}: set "
            f"task.model.num_classes={len(names)}"
        )
    return {
        name: images.with_classes(names).as_source(
            params.image_field_key, params.label_field_key, params.is_multilabel
        )
        for name, images in sets.items()
    }


def _with_encoded_images(params: configs.DataConfig) -> configs.DataConfig:
    """Leaves decoding to the parser, which decodes no more than the crop."""
    skipped = params.tfds_skip_decoding_feature or "image"
    return dataclasses.replace(params, tfds_skip_decoding_feature=skipped, tfds_as_supervised=False)


def _tfds_decoder(params: configs.DataConfig) -> Callable[[dict[str, tf.Tensor]], dict]:
    """Brings the features `image` and `label` under the keys of the config."""

    def decode(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {
            params.image_field_key: features["image"],
            params.label_field_key: features["label"],
        }

    return decode
