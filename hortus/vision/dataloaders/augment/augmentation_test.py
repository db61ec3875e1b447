"""AutoAugment and RandAugment."""

import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.configs import common
from hortus.vision.dataloaders import augment
from hortus.vision.dataloaders.augment import operations
from hortus.vision.dataloaders.augment.policies import POLICIES

IMAGE = tf.constant(np.random.default_rng(0).integers(0, 255, [24, 32, 3]).astype(np.uint8))
BOXES = tf.constant([[0.2, 0.2, 0.7, 0.6], [0.5, 0.1, 0.9, 0.4]])


def distort_many(augmentation, count=40):
    """Results of the seeds (5, 0), (5, 1), ..., from one traced pipeline."""
    dataset = tf.data.Dataset.range(count).map(
        lambda i: augmentation.distort(IMAGE, [tf.constant(5, tf.int64), i]), num_parallel_calls=2
    )
    assert dataset.element_spec == tf.TensorSpec([24, 32, 3], tf.uint8)
    return list(dataset.as_numpy_iterator())


def distort_boxes(augmentation, count=20):
    dataset = tf.data.Dataset.range(count).map(
        lambda i: augmentation.distort_with_boxes(IMAGE, BOXES, [tf.constant(5, tf.int64), i])
    )
    assert dataset.element_spec[1] == tf.TensorSpec([2, 4], tf.float32)
    return list(dataset.as_numpy_iterator())


def share_changed(results):
    return np.mean([np.any(result != IMAGE.numpy()) for result in results])


def needs_boxes(policy):
    return any(name in operations.BOX_OPERATIONS for line in policy for name, _, _ in line)


@pytest.mark.parametrize("name", [name for name in POLICIES if not needs_boxes(POLICIES[name])])
def test_every_policy_runs_and_is_determined_by_its_seed(name):
    augmentation = augment.AutoAugment(name, cutout_const=4)
    first = distort_many(augmentation, 12)
    np.testing.assert_array_equal(first[7], augmentation.distort(IMAGE, [5, 7]))
    assert len({image.tobytes() for image in first}) > 1 or name == "test"


def test_the_box_policy_moves_boxes():
    results = distort_boxes(augment.AutoAugment("detection_v0"), 30)
    boxes = np.array([boxes for _, boxes in results])
    assert np.all((boxes >= 0) & (boxes <= 1)) and np.all(boxes[..., 2:] > boxes[..., :2])
    assert np.any(boxes != BOXES.numpy())


def test_the_box_policy_needs_boxes():
    with pytest.raises(ValueError, match="moves boxes"):
        augment.AutoAugment("detection_v0").distort(IMAGE)


def test_a_policy_of_ones_own():
    augmentation = augment.AutoAugment(policies=((("Invert", 1.0, 0), ("Invert", 1.0, 0)),))
    np.testing.assert_array_equal(augmentation.distort(IMAGE), IMAGE)
    inverted = augment.AutoAugment(policies=((("Invert", 1.0, 0),),)).distort(IMAGE)
    np.testing.assert_array_equal(inverted, 255 - IMAGE)


def test_the_probability_of_a_step_holds():
    augmentation = augment.AutoAugment(policies=((("Invert", 0.25, 0),),))
    assert abs(share_changed(distort_many(augmentation, 400)) - 0.25) < 4 * (0.1875 / 400) ** 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: augment.AutoAugment("v1"), "unknown AutoAugment policy 'v1'; did you mean v0"),
        (lambda: augment.AutoAugment(policies=((("Rotat", 1, 1),),)), "did you mean Rotate"),
        (lambda: augment.RandAugment(exclude_ops=["cutout"]), "did you mean Cutout"),
    ],
)
def test_unknown_names_show_near_ones(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_randaugment_draws_all_operations_and_no_excluded_one(monkeypatch):
    drawn = list(operations.IMAGE_OPERATIONS)
    for number, name in enumerate(drawn):
        paint = lambda image, _, n=number: tf.zeros_like(image) + tf.cast(n, tf.uint8)  # noqa: E731
        monkeypatch.setitem(operations.IMAGE_OPERATIONS, name, paint)
    augmentation = augment.RandAugment(num_layers=1, exclude_ops=["Cutout", "Invert"])
    seen = {drawn[image[0, 0, 0]] for image in distort_many(augmentation, 300)}
    assert seen == set(augmentation.operation_names)
    assert len(seen) == 14 and not seen & {"Cutout", "Invert"}


def test_randaugment_is_determined_by_its_seed():
    augmentation = augment.RandAugment(magnitude_std=0.5)
    results = distort_many(augmentation)
    for i in (0, 1, 30):
        np.testing.assert_array_equal(results[i], augmentation.distort(IMAGE, [5, i]))
    assert len({image.tobytes() for image in results}) > 30


def test_layers_are_applied_one_after_another():
    settings = {"exclude_ops": _all_but("Invert")}
    for num_layers, changed in ((0, 0), (1, 1), (2, 0), (3, 1)):
        augmentation = augment.RandAugment(num_layers=num_layers, **settings)
        assert share_changed(distort_many(augmentation, 3)) == changed


def test_prob_to_apply_holds():
    augmentation = augment.RandAugment(
        num_layers=1, prob_to_apply=0.3, exclude_ops=_all_but("Invert")
    )
    assert abs(share_changed(distort_many(augmentation, 400)) - 0.3) < 4 * (0.21 / 400) ** 0.5


def _all_but(name):
    return [other for other in augment.RandAugment().operation_names if other != name]


@pytest.mark.parametrize("std", [0.5, 2.0])
def test_the_noise_on_the_magnitude_has_its_standard_deviation(std):
    # Brightness is a factor of level / 10 * 1.8 + 0.1 on a grey of 100.
    augmentation = augment.RandAugment(
        num_layers=1, magnitude=5, magnitude_std=std, exclude_ops=_all_but("Brightness")
    )
    grey = tf.fill([4, 4, 3], tf.constant(100, tf.uint8))
    dataset = tf.data.Dataset.range(500).map(
        lambda i: augmentation.distort(grey, [tf.constant(0, tf.int64), i])[0, 0, 0]
    )
    levels = (np.array(list(dataset.as_numpy_iterator())) / 100 - 0.1) / 1.8 * 10
    # 500 draws: 4 standard errors of a standard deviation are 13 %; and values are cut off.
    assert levels.std() == pytest.approx(std, rel=0.15, abs=0.03)
    assert levels.min() >= -0.06 and levels.max() <= 10


def test_the_longest_shift_comes_from_the_settings():
    for const, largest in ((2.0, 2), (9.0, 9)):
        augmentation = augment.RandAugment(
            num_layers=1, translate_const=const, exclude_ops=_all_but("TranslateX")
        )
        shifts = {
            next(s for s in range(-10, 11) if _is_shifted(image, s))
            for image in distort_many(augmentation, 10)
        }
        assert shifts == {-largest, largest}


def _is_shifted(image, pixels):
    source = IMAGE.numpy()
    if pixels >= 0:
        return np.array_equal(image[:, : 32 - pixels], source[:, pixels:])
    return np.array_equal(image[:, -pixels:], source[:, :pixels])


def test_randaugment_for_detection_moves_boxes():
    augmentation = augment.RandAugment.build_for_detection(
        exclude_ops=["Cutout", "Rotate"], translate_const=8.0
    )
    assert "Rotate_BBox" not in augmentation.operation_names
    results = distort_boxes(augmentation, 40)
    boxes = np.array([boxes for _, boxes in results])
    moved = np.any(boxes != BOXES.numpy(), axis=(1, 2))
    assert 0.1 < moved.mean() < 0.9  # 4 of 14 operations move, twice
    assert np.all(boxes[..., 2:] > boxes[..., :2])


def test_float_images_stay_float():
    result = augment.RandAugment().distort(tf.cast(IMAGE, tf.float32), [1, 2])
    assert result.dtype == tf.float32
    np.testing.assert_array_equal(result, augment.RandAugment().distort(IMAGE, [1, 2]))


def test_three_augment_is_grey_solarised_or_blurred():
    results = distort_many(augment.build_three_augment(), 60)
    grey = np.mean([np.all(image == image[..., :1]) for image in results])
    smooth = np.mean(
        [
            image.std() < IMAGE.numpy().std() * 0.8 and np.ptp(image, axis=-1).any()
            for image in results
        ]
    )
    assert 0.1 < grey < 0.6 and 0.1 < smooth < 0.6


def test_settings_make_the_augmentation():
    config = common.Augmentation(
        {
            "type": "randaug",
            "randaug": {"magnitude": 7, "exclude_ops": ["Cutout"], "magnitude_std": 0.5},
        }
    )
    built = augment.build_image_augmentation(config)
    assert (built.magnitude, built.magnitude_std, built.translate_const) == (7.0, 0.5, 10.0)
    assert "Cutout" not in built.operation_names
    boxed = augment.build_box_augmentation(config)
    assert "Rotate_BBox" in boxed.operation_names
    config = common.Augmentation({"type": "autoaug", "autoaug": {"augmentation_name": "svhn"}})
    assert augment.build_image_augmentation(config).augmentation_name == "svhn"
    config = common.Augmentation(type="ssd_random_crop")
    assert isinstance(augment.build_box_augmentation(config), augment.SSDRandomCrop)
    with pytest.raises(ValueError, match="autoaug or randaug"):
        augment.build_image_augmentation(config)
    assert augment.build_image_augmentation(common.Augmentation()) is None
    assert augment.build_box_augmentation(None) is None
    assert augment.build_random_erasing(None) is None
    erasing = augment.build_random_erasing(common.RandomErasing(probability=0.5))
    assert erasing.probability == 0.5
