import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.dataloaders.augment import MixupAndCutmix

# Image i of the batch is filled with i, so that a mixture tells its parts.
IMAGES = tf.reshape(tf.range(4.0), [4, 1, 1, 1]) * tf.ones([4, 20, 30, 3])
LABELS = tf.range(4)


def mix_many(mixing, count=100, images=IMAGES, labels=LABELS):
    dataset = tf.data.Dataset.range(count).map(
        lambda i: mixing.distort(images, labels, [tf.constant(0, tf.int64), i])
    )
    return list(dataset.as_numpy_iterator())


def test_mixup_labels_are_the_shares_of_the_images():
    for images, labels in mix_many(MixupAndCutmix(4, cutmix_alpha=0, label_smoothing=0), 30):
        for i in range(4):
            weight = labels[i, i]
            assert labels[i].sum() == pytest.approx(1.0, abs=1e-6)
            np.testing.assert_allclose(images[i], weight * i + (1 - weight) * (3 - i), atol=1e-5)


def test_cutmix_labels_are_the_areas_of_the_images():
    mixed = 0
    for images, labels in mix_many(MixupAndCutmix(4, mixup_alpha=0, label_smoothing=0), 30):
        for i in range(4):
            own = np.mean(images[i] == i)
            assert set(np.unique(images[i])) <= {i, 3 - i}
            assert labels[i, i] == pytest.approx(own, abs=1e-5)
            mixed += 0 < own < 1
            rows, columns = np.nonzero(images[i, :, :, 0] != i)
            if rows.size:
                assert rows.size == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
    assert mixed > 60


def test_weights_differ_in_a_batch():
    _, labels = mix_many(MixupAndCutmix(4, cutmix_alpha=0), 1)[0]
    assert len({round(float(labels[i, i]), 5) for i in range(4)}) == 4


@pytest.mark.parametrize("switch_prob", [0.0, 0.2, 1.0])
def test_switch_prob_is_the_share_of_cutmix(switch_prob):
    results = mix_many(MixupAndCutmix(4, switch_prob=switch_prob), 300)
    # Mixup makes values that no image has.
    is_cutmix = [np.all(images == np.round(images)) for images, _ in results]
    error = 4 * (switch_prob * (1 - switch_prob) / 300) ** 0.5
    assert abs(np.mean(is_cutmix) - switch_prob) <= error


def test_prob_is_the_share_of_mixed_batches():
    results = mix_many(MixupAndCutmix(4, prob=0.3, cutmix_alpha=0), 300)
    mixed = np.mean([np.any(images != IMAGES) for images, _ in results])
    assert abs(mixed - 0.3) < 4 * (0.21 / 300) ** 0.5


def test_smoothing_spreads_its_share():
    labels = MixupAndCutmix(4, label_smoothing=0.2).smooth_labels(LABELS)
    np.testing.assert_allclose(labels, np.eye(4) * 0.8 + 0.05, atol=1e-6)
    soft = tf.constant([[0.5, 0.5, 0.0, 0.0]])
    smoothed = MixupAndCutmix(4, label_smoothing=0.2).smooth_labels(soft)
    np.testing.assert_allclose(smoothed, [[0.45, 0.45, 0.05, 0.05]], atol=1e-6)


def test_beta_is_beta():
    mixing = MixupAndCutmix(4, mixup_alpha=0.8, cutmix_alpha=0, label_smoothing=0)
    weights = np.array([[labels[i, i] for i in range(4)] for _, labels in mix_many(mixing, 300)])
    # Beta(0.8, 0.8) has mean 1/2 and variance 1 / (4 (2 * 0.8 + 1)); 1200 draws.
    assert abs(weights.mean() - 0.5) < 0.04
    assert weights.var() == pytest.approx(1 / 4 / 2.6, rel=0.1)


def test_clips_are_mixed_as_a_whole():
    clips = tf.tile(IMAGES[:, tf.newaxis], [1, 3, 1, 1, 1])
    for images, _ in mix_many(MixupAndCutmix(4), 10, images=clips):
        np.testing.assert_array_equal(images[:, 0], images[:, 2])


def test_types_and_shapes_stay():
    images, labels = MixupAndCutmix(4).distort(tf.cast(IMAGES, tf.bfloat16), LABELS)
    assert images.dtype == tf.bfloat16 and images.shape == [4, 20, 30, 3]
    assert labels.dtype == tf.float32 and labels.shape == [4, 4]


def test_nothing_to_mix_is_an_error():
    with pytest.raises(ValueError, match="both 0"):
        MixupAndCutmix(4, mixup_alpha=0, cutmix_alpha=0)
