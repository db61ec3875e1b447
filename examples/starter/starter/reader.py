"""The input: image files to batches."""

from collections.abc import Sequence

import tensorflow as tf

from hortus.vision.dataloaders import image_files, preprocess
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.randomness import Rng
from starter import config


def build_reader(params: config.DataConfig, size: Sequence[int]) -> InputReader:
    """The reader of batches: images [batch, height, width, 3] from -1 to 1, classes int32 [batch].

    For data of another form, make another `Table`: a row per example, with what `parse` needs.

    Args:
        params: what to read and how.
        size: height and width of the images.
    """
    table = image_files.read_folders(params.input_path).as_source("image", "class")

    def parse(example: dict[str, tf.Tensor], seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rng = Rng(seed)  # a new seed for each use; the same ones when a run is repeated
        if params.is_training:
            image = preprocess.decode_and_random_crop(
                example["image"], area_range=params.crop_area_range, seed=rng.seed()
            )
        else:
            image = preprocess.decode_image(example["image"])
        image = scaled(image, size)
        if params.is_training:
            image = tf.image.stateless_random_flip_left_right(image, rng.seed())
            image = tf.image.stateless_random_brightness(image, params.brightness, rng.seed())
        return tf.ensure_shape(image, [*size, 3]), tf.cast(example["class"], tf.int32)

    return InputReader(params, parser_fn=parse, sources={"images": table})


def scaled(images: tf.Tensor, size: Sequence[int]) -> tf.Tensor:
    """Images of any height and width, with or without a batch, in this size and from -1 to 1."""
    images = tf.image.resize(images, size) / 127.5 - 1.0
    return tf.ensure_shape(images, [*images.shape[:-3], *size, 3])
