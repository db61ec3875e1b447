"""Every entry of the augmentation fixture, compared with ours."""

import json

import numpy as np
import pytest
import tensorflow as tf

from hortus.testing import reference_dir
from hortus.vision.dataloaders.augment import box_ops, color_ops, geometry_ops, operations
from hortus.vision.dataloaders.augment.auto_augment import AutoAugment
from hortus.vision.dataloaders.augment.mixing import MixupAndCutmix, mix_labels
from hortus.vision.dataloaders.augment.policies import POLICIES
from hortus.vision.dataloaders.augment.rand_augment import OPERATIONS, RandAugment
from hortus.vision.dataloaders.augment.random_erasing import RandomErasing
from hortus.vision.dataloaders.augment.ssd_random_crop import SSDRandomCrop
from hortus.vision.dataloaders.randomness import Rng

INPUTS = {"image", "bboxes", "MixupAndCutmix/update_labels_lambda/lambda"}
# Sums of nine float32 products of values up to 255.
FILTER_TOLERANCE = 1e-4
# Whole pixels divided by the image size, in float32.
BOX_TOLERANCE = 1e-6
LABEL_TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def golden():
    with np.load(reference_dir() / "golden" / "augment.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def facts():
    return json.loads((reference_dir() / "golden" / "augment.json").read_text("utf-8"))


def ours(golden: dict) -> dict:
    """The fixture's outputs, computed here: name -> (value, tolerance)."""
    image, bboxes = tf.constant(golden["image"]), tf.constant(golden["bboxes"])
    pixels = {
        "autocontrast": color_ops.autocontrast(image),
        "equalize": color_ops.equalize(image),
        "invert": color_ops.invert(image),
        "posterize_4": color_ops.posterize(image, 4),
        "posterize_2": color_ops.posterize(image, 2),
        "solarize_128": color_ops.solarize(image, 128),
        "solarize_add_60": color_ops.solarize_add(image, 60),
        "grayscale": color_ops.grayscale(image),
        "rotate_20": geometry_ops.rotate(image, 20.0),
        "wrapped_rotate_20_r128": geometry_ops.rotate(image, 20.0),
        "translate_x_8_r128": geometry_ops.translate_x(image, 8),
        "translate_y_8_r128": geometry_ops.translate_y(image, 8),
        "shear_x_.2_r128": geometry_ops.shear_x(image, 0.2),
        "shear_y_.2_r128": geometry_ops.shear_y(image, 0.2),
        "blend_.5_with_inverted": color_ops.blend(image, 255 - image, 0.5),
    }
    for name in ("color", "contrast", "brightness", "sharpness"):
        for factor in (0.4, 1.6):
            pixels[f"{name}_{factor}"] = getattr(color_ops, name)(image, factor)
    results = {f"op/{name}": (value, 0) for name, value in pixels.items()}
    results["op/gaussian_filter2d_3x3_s1"] = (
        color_ops.gaussian_filter2d(image, 3, 1.0),
        FILTER_TOLERANCE,
    )
    boxed = {
        "rotate_with_bboxes_20": box_ops.rotate_with_bboxes(image, bboxes, 20.0),
        "shear_x_with_bboxes_.2": box_ops.shear_x_with_bboxes(image, bboxes, 0.2),
        "shear_y_with_bboxes_.2": box_ops.shear_y_with_bboxes(image, bboxes, 0.2),
        "translate_bbox_x_8": box_ops.translate_x_with_bboxes(image, bboxes, 8.0),
        "translate_bbox_y_8": box_ops.translate_y_with_bboxes(image, bboxes, 8.0),
    }
    for name, (new_image, new_boxes) in boxed.items():
        results[f"op/{name}/image"] = (new_image, 0)
        results[f"op/{name}/bboxes"] = (new_boxes, BOX_TOLERANCE)
    mixing = MixupAndCutmix(num_classes=4, label_smoothing=0.1)
    labels = mixing.smooth_labels(tf.range(4))
    weights = golden["MixupAndCutmix/update_labels_lambda/lambda"]
    never = MixupAndCutmix(num_classes=4, prob=0.0)
    for name, value in {
        "smooth_labels_ls0.1": labels,
        "update_labels_lambda": mix_labels(labels, weights),
        "prob0": never.distort(tf.zeros([4, 8, 8, 3]), tf.range(4))[1],
    }.items():
        results[f"MixupAndCutmix/{name}"] = (value, LABEL_TOLERANCE)
    return results


def test_every_array_equals_the_reference(golden):
    results = ours(golden)
    assert set(results) == set(golden) - INPUTS
    for key, (value, tolerance) in results.items():
        assert np.asarray(value).dtype == golden[key].dtype, key
        np.testing.assert_allclose(
            np.asarray(value, np.float64), golden[key], rtol=0, atol=tolerance, err_msg=key
        )


def test_policies_equal_the_reference(facts):
    expected = {
        name: tuple(tuple(tuple(step) for step in line) for line in policy)
        for name, policy in facts["autoaugment_policies"].items()
    }
    assert expected == POLICIES


def test_operations_are_those_of_the_reference(facts):
    known = {*operations.IMAGE_OPERATIONS, *operations.BOX_OPERATIONS}
    assert known == set(facts["NAME_TO_FUNC"])
    assert set(operations.BOX_OPERATIONS) == set(facts["REQUIRE_BOXES_FUNCS"])
    assert set(operations.DECIDE_THEMSELVES) == set(facts["PROB_FUNCS"])
    assert list(OPERATIONS) == facts["randaugment_available_ops"]
    detection = RandAugment.build_for_detection()
    assert list(detection.operation_names) == facts["randaugment_detection_ops"]


def test_levels_mean_what_they_mean_in_the_reference(facts, monkeypatch):
    """What each operation receives at levels 0, 5 and 10; signs are random."""
    received: list = []

    def record(*arguments, **_):
        # The image (and boxes) first, then what the level was turned into.
        scalars = [a for a in arguments if not isinstance(a, Rng) and np.ndim(a) == 0]
        received[:] = [abs(float(scalar)) for scalar in scalars]
        return arguments[0]

    for module in (color_ops, geometry_ops, box_ops):
        for name in dir(module):
            if callable(getattr(module, name)) and name in _OPERATION_FUNCTIONS:
                monkeypatch.setattr(module, name, record)
    image, boxes = tf.zeros([8, 8, 3], tf.uint8), tf.zeros([1, 4])
    [levels] = [value for key, value in facts.items() if key.startswith("abs(level_to_arg")]
    for name, expected in levels.items():
        for level, arguments in expected.items():
            strength = operations.Strength(float(level), Rng([0, 0]), 40.0, 100.0)
            received.clear()
            if name == "Gaussian_Noise":
                received[:] = [strength.scaled(1.0), strength.scaled(strength.translate_const)]
            elif name in operations.BOX_OPERATIONS:
                operations.BOX_OPERATIONS[name](image, boxes, strength)
                del received[1:]  # the chance of those that decide themselves
            else:
                operations.IMAGE_OPERATIONS[name](image, strength)
            np.testing.assert_allclose(received, arguments, rtol=1e-6, err_msg=f"{name} {level}")


_OPERATION_FUNCTIONS = {
    *("autocontrast", "equalize", "invert", "posterize", "solarize", "solarize_add", "color"),
    *("contrast", "brightness", "sharpness", "grayscale", "rotate", "translate_x", "translate_y"),
    *("shear_x", "shear_y", "cutout", "rotate_with_bboxes", "shear_x_with_bboxes"),
    *("shear_y_with_bboxes", "translate_x_with_bboxes", "translate_y_with_bboxes"),
    "translate_y_only_bboxes",
}


def test_defaults_are_those_of_the_reference(facts):
    classes = {
        "AutoAugment": AutoAugment(),
        "RandAugment": RandAugment(),
        "RandomErasing": RandomErasing(),
        "MixupAndCutmix": MixupAndCutmix(num_classes=3),
        "SSDRandomCrop": SSDRandomCrop(),
    }
    elsewhere = {
        ("AutoAugment", "policies"),  # those of the name
        ("RandAugment", "exclude_ops"),  # part of operation_names
        ("RandomErasing", "max_aspect"),  # the inverse of min_aspect
        ("MixupAndCutmix", "num_classes"),  # has no default
        ("SSDRandomCrop", "params"),  # those of the config
    }
    for name, defaults in facts["defaults"].items():
        for argument, text in defaults.items():
            if (name, argument) not in elsewhere:
                value = getattr(classes[name], argument)
                assert value == eval(text, {}), f"{name}.{argument}"
