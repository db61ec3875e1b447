import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from hortus.vision.dataloaders.segmentation.mask_png import decode_mask, decode_segment_ids

CLASSES = np.random.RandomState(0).randint(0, 4, (7, 9)).astype(np.uint8)


def encode(picture, kind="PNG", **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def palette(values):
    picture = Image.fromarray(values, "P")
    # Two classes of the same colour, which the colours could not tell apart.
    picture.putpalette([0, 0, 0, 255, 0, 0, 255, 0, 0, 9, 8, 7] + [0] * 756)
    return picture


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("transparency", [None, 1])
def test_palette_images_give_numbers(bits, transparency):
    options = {} if transparency is None else {"transparency": transparency}
    encoded = encode(palette(CLASSES), bits=bits, **options)
    np.testing.assert_array_equal(decode_mask(encoded)[..., 0], CLASSES)


def test_all_numbers_of_a_palette():
    values = np.arange(256, dtype=np.uint8).reshape(16, 16)
    np.testing.assert_array_equal(decode_mask(encode(palette(values)))[..., 0], values)


def test_grey_images_give_greys():
    for picture, expected in (
        (Image.fromarray(CLASSES), CLASSES),
        (Image.fromarray(CLASSES.astype(np.uint16) * 300), CLASSES.astype(int) * 300),
        (Image.fromarray(CLASSES > 1), CLASSES > 1),
        (Image.fromarray(np.stack([CLASSES] * 3, -1)), CLASSES),
        (Image.fromarray(np.stack([CLASSES, CLASSES + 9], -1), "LA"), CLASSES),
    ):
        np.testing.assert_array_equal(decode_mask(encode(picture))[..., 0], expected)


def test_inside_a_graph():
    encoded = tf.constant([encode(palette(CLASSES)), encode(Image.fromarray(CLASSES))])
    for mask in tf.data.Dataset.from_tensor_slices(encoded).map(decode_mask):
        assert mask.dtype == tf.int32
        np.testing.assert_array_equal(mask[..., 0], CLASSES)


def test_what_is_no_mask_is_told():
    colours = np.random.RandomState(0).randint(0, 255, (4, 4, 3)).astype(np.uint8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="this is a colour image"):
        decode_mask(encode(Image.fromarray(colours)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a PNG file"):
        decode_mask(encode(Image.fromarray(colours), "JPEG"))


def test_segment_ids():
    ids = np.array([[0, 7], [300, 70000]])
    colours = np.stack([ids % 256, ids // 256 % 256, ids // 65536], -1).astype(np.uint8)
    np.testing.assert_array_equal(decode_segment_ids(encode(Image.fromarray(colours)))[..., 0], ids)
