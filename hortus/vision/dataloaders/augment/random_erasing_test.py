import numpy as np
import tensorflow as tf

from hortus.vision.dataloaders.augment import RandomErasing


def erase_many(erasing, shape=(40, 50), count=200):
    image = tf.fill([*shape, 3], 9.0)
    dataset = tf.data.Dataset.range(count).map(
        lambda i: erasing.distort(image, [tf.constant(0, tf.int64), i])
    )
    return [np.any(result != 9.0, axis=-1) for result in dataset.as_numpy_iterator()]


def test_rectangles_keep_to_their_ranges():
    erased = erase_many(RandomErasing(probability=1.0, min_area=0.1, max_area=0.3))
    areas, aspects = [], []
    for mask in erased:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert mask.sum() == height * width  # one full rectangle
        areas.append(mask.mean())
        aspects.append(height / width)
    # Sides are rounded to whole pixels, of at least 7.
    assert 0.09 < min(areas) < 0.12 and 0.28 < max(areas) < 0.33
    assert 0.25 < min(aspects) < 0.5 and 2.0 < max(aspects) < 3.9


def test_the_probability_holds():
    share = np.mean([mask.any() for mask in erase_many(RandomErasing(probability=0.25), count=400)])
    assert abs(share - 0.25) < 4 * (0.1875 / 400) ** 0.5
    assert not any(mask.any() for mask in erase_many(RandomErasing(probability=0.0), count=20))


def test_rectangles_are_everywhere():
    frequency = np.mean(erase_many(RandomErasing(probability=1.0), count=400), axis=0)
    # Few rectangles reach into a corner; in the middle there is one in three images.
    assert frequency[2:-2, 2:-2].min() > 0.005 and frequency.max() < 0.6


def test_the_fill_is_standard_normal_noise():
    image = tf.fill([64, 64, 3], 9.0)
    erasing = RandomErasing(probability=1.0, min_area=0.3, max_area=0.33)
    result = erasing.distort(image, [1, 2]).numpy()
    noise = result[result != 9.0]
    # About 3700 values: 4 standard errors.
    assert abs(noise.mean()) < 0.07 and abs(noise.std() - 1) < 0.05


def test_several_rectangles_share_the_area():
    erased = erase_many(RandomErasing(probability=1.0, min_count=2, max_count=3), count=60)
    areas = [mask.mean() for mask in erased]
    assert max(areas) < 0.36


def test_the_type_and_shape_of_the_image_stay():
    image = tf.zeros([8, 8, 3], tf.bfloat16)
    result = RandomErasing(probability=1.0).distort(image, [0, 1])
    assert result.dtype == tf.bfloat16 and result.shape == [8, 8, 3]
