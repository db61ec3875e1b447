"""Every entry of the preprocessing fixture, compared with ours."""

import json

import numpy as np
import pytest
import tensorflow as tf

from hortus.testing import reference_dir
from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.preprocess import resize, video

# Normalisation is one multiplication and one subtraction here, in another order than there; values
# reach 2.6, so this is about ten units in the last place of float32.
NORMALIZE_TOLERANCE = 2e-6
# Boxes and scales: a few operations in float32 on values up to 80.
BOX_TOLERANCE = 1e-5

INPUTS = {"image_60x80", "jpeg_bytes", "boxes", "masks", "norm_boxes", "video"}
RESIZE = {
    "64x64_pad128": {"desired_size": [64, 64], "padded_size": [128, 128]},
    "64x64_pad64_noaspect": {
        "desired_size": [64, 64],
        "padded_size": [64, 64],
        "keep_aspect_ratio": False,
    },
    "100x50_pad128": {"desired_size": [100, 50], "padded_size": [128, 128]},
    "64_scale1.5": {
        "desired_size": [64, 64],
        "padded_size": [64, 64],
        "aug_scale_min": 1.5,
        "aug_scale_max": 1.5,
    },
    "64_scale0.5": {
        "desired_size": [64, 64],
        "padded_size": [64, 64],
        "aug_scale_min": 0.5,
        "aug_scale_max": 0.5,
    },
    "64_centered": {"desired_size": [64, 64], "padded_size": [64, 64], "centered_crop": True},
    "64_nearest": {"desired_size": [64, 64], "padded_size": [64, 64], "method": "nearest"},
}


@pytest.fixture(scope="module")
def golden():
    with np.load(reference_dir() / "golden" / "preprocess.npz") as arrays:
        return dict(arrays)


def ours(golden: dict) -> dict:
    """The fixture's outputs, computed here: name -> (value, tolerance)."""
    image, boxes, masks, normalized, clip = (
        tf.constant(golden[name])
        for name in ("image_60x80", "boxes", "masks", "norm_boxes", "video")
    )
    jpeg = tf.constant(golden["jpeg_bytes"].tobytes())
    results = {
        "normalize_image": (preprocess.normalize_image(image), NORMALIZE_TOLERANCE),
        "normalize_scaled_float_image(image/255)": (
            preprocess.normalize_scaled_float_image(tf.cast(image, tf.float32) / 255),
            NORMALIZE_TOLERANCE,
        ),
        "normalize_image_offset.5_scale.5": (
            preprocess.normalize_image(image, [0.5] * 3, [0.5] * 3),
            NORMALIZE_TOLERANCE,
        ),
        # The key says 640, a multiple of 128 already; the value is that of 641.
        "compute_padded_size_600x640_s128": (preprocess.compute_padded_size([600, 641], 128), 0),
        "center_crop_image": (preprocess.center_crop_image(image), 0),
        "center_crop_image_frac0.5": (preprocess.center_crop_image(image, 0.5), 0),
        "center_crop_image_v2_from_jpeg": (preprocess.decode_and_center_crop(jpeg), 0),
        "resize_and_crop_boxes_s0.8_64x64_off2_3": (
            preprocess.resize_and_crop_boxes(boxes, [0.8, 0.8], [64, 64], [2, 3]),
            BOX_TOLERANCE,
        ),
        "horizontal_flip_masks": (preprocess.horizontal_flip_masks(masks[..., 0]), 0),
        "clip_or_pad_to_5_fill-1": (preprocess.clip_or_pad_to_fixed_size(boxes, 5, -1), 0),
        "clip_or_pad_to_2": (preprocess.clip_or_pad_to_fixed_size(boxes, 2), 0),
        "random_crop_image_area1_aspect=img": (
            tf.shape(
                preprocess.random_crop_image(
                    image, aspect_ratio_range=(80 / 60, 80 / 60), area_range=(1.0, 1.0)
                )
            ),
            0,
        ),
        "sample_sequence_steps4_random0_stride1_idx": (
            video.sample_sequence(tf.range(10), 4, random=False, stride=1),
            0,
        ),
        "sample_sequence_steps4_random0_stride2_idx": (
            video.sample_sequence(tf.range(10), 4, random=False, stride=2),
            0,
        ),
        "sample_linspace_sequence_2clips_4steps": (
            video.sample_linspace_sequence(tf.range(10), 2, 4, 1),
            0,
        ),
        "sample_segment_sequence_n4_middle": (
            video.sample_segment_sequence(tf.range(10), 4, is_training=False),
            0,
        ),
        "crop_image_center_16": (video.crop_image(clip, 16, 16), 0),
        "crop_image_3crops_16": (video.crop_image(clip, 16, 16, num_crops=3), 0),
        "resize_smallest_16": (video.resize_smallest(clip, 16), 0),
        "normalize_image_3d_zero1False": (video.normalize_image(clip, False), NORMALIZE_TOLERANCE),
        "normalize_image_3d_zero1True": (video.normalize_image(clip, True), NORMALIZE_TOLERANCE),
        "process_source_id": (preprocess.process_source_id(tf.constant(["123", "7"])), 0),
        "process_source_id_empty_int": (
            preprocess.process_source_id(tf.constant([], tf.int64)),
            0,
        ),
    }
    for name, arguments in RESIZE.items():
        key = f"resize_and_crop_image/{name}"
        info = golden[f"{key}/info"]
        with pytest.MonkeyPatch.context() as patch:
            # The place of the crop is random; the fixture's own is used.
            patch.setattr(resize, "_random_offset", lambda *_, at=info[3]: tf.cast(at, tf.int32))
            result = preprocess.resize_and_crop_image(image, **arguments)
        results[f"{key}/image"], results[f"{key}/info"] = (result[0], 0), (result[1], BOX_TOLERANCE)
    for key, result in {
        "resize_and_crop_image_v2/s48_l64_pad64": preprocess.resize_and_crop_image_by_sides(
            image, 48, 64, [64, 64]
        ),
        "resize_image_32_max40": preprocess.resize_image(image, 32, 40),
    }.items():
        results[f"{key}/image"], results[f"{key}/info"] = (result[0], 0), (result[1], BOX_TOLERANCE)
    for centered in (False, True):
        results[f"resize_and_crop_masks_s0.8_64x64_off2_3_centered{centered}"] = (
            preprocess.resize_and_crop_masks(masks, [0.8, 0.8], [64, 64], [2, 3], centered),
            0,
        )
    for direction, flip in {
        "horizontal": preprocess.random_horizontal_flip,
        "vertical": preprocess.random_vertical_flip,
    }.items():
        for prob in (0.0, 1.0):
            parts = flip(image, normalized, masks[..., 0], prob=prob)
            for part, value in zip(("image", "boxes", "masks"), parts, strict=True):
                results[f"random_{direction}_flip_prob{prob}/{part}"] = (value, 1e-7)
    return results


def test_every_array_equals_the_reference(golden):
    results = ours(golden)
    texts = {"constants", "pad_groundtruths"}  # compared below
    assert set(results) == set(golden) - INPUTS - texts
    for key, (value, tolerance) in results.items():
        np.testing.assert_allclose(
            np.asarray(value, np.float64), golden[key], rtol=0, atol=tolerance, err_msg=key
        )


def test_types_are_those_of_the_reference(golden):
    for key, (value, _) in ours(golden).items():
        kinds = {np.asarray(value).dtype.kind, golden[key].dtype.kind}
        assert len(kinds) == 1, f"{key}: {kinds}"


def test_constants_equal_the_reference(golden):
    for name, value in json.loads(str(golden["constants"])).items():
        np.testing.assert_allclose(getattr(preprocess, name), value, rtol=1e-12, err_msg=name)


def test_padded_groundtruths_equal_the_reference(golden):
    expected = json.loads(str(golden["pad_groundtruths"]))
    padded = preprocess.pad_groundtruths_to_fixed_size(
        {
            "is_crowds": tf.constant([0, 1]),
            "areas": tf.constant([1.0, 2.0]),
            "classes": tf.constant([3, 4]),
            "boxes": tf.constant(golden["boxes"][:2]),
            "source_id": tf.constant(5),
        },
        4,
    )
    assert padded.pop("source_id") == 5
    assert {name: value.numpy().tolist() for name, value in padded.items()} == expected
