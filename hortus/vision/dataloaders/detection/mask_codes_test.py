import numpy as np
import pytest
import tensorflow as tf
from pycocotools import mask as oracle

from hortus.vision.dataloaders.detection import mask_codes


def random_masks(rng, count, height, width):
    """Blobs of several kinds: noise, rectangles, full, empty, full columns."""
    masks = np.zeros((count, height, width), np.uint8)
    for mask in masks:
        kind = rng.integers(5)
        if kind == 0:
            mask[:] = rng.random(mask.shape) < rng.random()
        elif kind == 1:
            top, left = rng.integers(height), rng.integers(width)
            mask[top : top + rng.integers(1, height + 1), left : left + rng.integers(1, 9)] = 1
        elif kind == 2:
            mask[:] = 1
        elif kind == 3:
            mask[:, rng.integers(width) :] = 1
    return masks


def codes_of(masks):
    encoded = oracle.encode(np.asfortranarray(np.moveaxis(masks, 0, -1)))
    return tf.constant([each["counts"] for each in encoded], tf.string)


@pytest.mark.parametrize("seed", range(6))
def test_codes_are_those_of_pycocotools_both_ways(seed):
    rng = np.random.default_rng(seed)
    height, width = (int(side) for side in rng.integers(1, 70, 2))
    masks = random_masks(rng, 9, height, width)
    codes = codes_of(masks)
    written = [mask_codes.encode(mask).numpy() for mask in masks]
    assert written == list(codes.numpy())
    np.testing.assert_array_equal(mask_codes.measure(codes)[0], masks.sum(axis=(1, 2)))
    np.testing.assert_array_equal(mask_codes.measure(codes)[1], [height * width] * 9)
    rows = np.tile(np.arange(height), (9, 1))
    columns = np.tile(np.arange(width), (9, 1))
    np.testing.assert_array_equal(mask_codes.sample(codes, [height, width], rows, columns), masks)
    # Any rows and columns, also some of them twice.
    rows = np.sort(rng.integers(0, height, (9, 13)), axis=1)
    columns = rng.integers(0, width, (9, 7))
    expected = [m[r][:, c] for m, r, c in zip(masks, rows, columns, strict=True)]
    np.testing.assert_array_equal(
        mask_codes.sample(codes, [height, width], rows, columns), expected
    )


def test_large_images_have_large_numbers():
    mask = np.zeros((5000, 3000), np.uint8)
    mask[4990:, 2990:] = 1
    mask[0, 0] = 1
    codes = codes_of(mask[None])
    assert mask_codes.encode(mask).numpy() == codes.numpy()[0]
    assert int(mask_codes.measure(codes)[0][0]) == 101
    found = mask_codes.sample(codes, [5000, 3000], [[0, 1, 4989, 4990]], [[0, 2989, 2990]])
    np.testing.assert_array_equal(found[0], [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]])


def test_an_empty_code_is_an_empty_mask_and_no_masks_are_none():
    codes = tf.constant([b"", mask_codes.encode(np.ones((4, 4))).numpy(), b""])
    np.testing.assert_array_equal(mask_codes.measure(codes), [[0, 16, 0], [0, 16, 0]])
    places = np.tile(np.arange(4), (3, 1))
    found = mask_codes.sample(codes, [4, 4], places, places).numpy()
    assert found[1].all() and not found[[0, 2]].any()
    nothing = tf.zeros([0], tf.string)
    assert mask_codes.sample(nothing, [4, 4], places[:0], places[:0]).shape == (0, 4, 4)
    assert mask_codes.measure(nothing)[0].shape == (0,)


def test_png_files_and_numbers_of_objects_become_codes():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, (20, 30)).astype(np.int32)
    masks = np.stack([labels == number for number in (3, 1, 9)]).astype(np.uint8)
    expected = list(codes_of(masks).numpy())
    assert list(mask_codes.encode_numbers(tf.constant(labels), [3, 1, 9]).numpy()) == expected
    for value, threshold in ((1, 0.0), (255, 127.5), (1, 0.5)):
        files = [tf.io.encode_png(value * mask[..., None]).numpy() for mask in masks]
        assert list(mask_codes.encode_pngs(tf.constant(files), threshold).numpy()) == expected
    assert mask_codes.encode_pngs(tf.zeros([0], tf.string)).shape == (0,)
