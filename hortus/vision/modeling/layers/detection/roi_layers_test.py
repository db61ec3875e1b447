"""The layers between the two stages of a detector: generator, sampler, aligner, mask sampler."""

import keras
import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.modeling import layers
from hortus.vision.ops.anchors import AnchorGenerator


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/roi.npz")


def again(layer):
    """The layer that its config makes, which must be all there is to it."""
    return type(layer).from_config(layer.get_config())


def numpy(values):
    return keras.tree.map_structure(ops.convert_to_numpy, tuple(values))


# ---- generator ------------------------------------------------------------------------------


def test_generator_has_settings_for_training_and_evaluation_on_tensorflow(golden):
    generator = again(
        layers.MultilevelROIGenerator(
            pre_nms_top_k=200,
            num_proposals=50,
            pre_nms_min_size_threshold=16.0,
            pre_nms_score_threshold=0.3,
            test_pre_nms_top_k=100,
            test_num_proposals=30,
        )
    )
    raw = [
        {str(level): golden[f"rpn/{name}/level{level}"] for level in range(2, 7)}
        for name in ("raw_boxes", "raw_scores")
    ]
    anchors = AnchorGenerator(2, 6, 1, (0.5, 1.0, 2.0), 8.0)((256, 256))
    for training in (True, False):
        _, scores = generator(*raw, anchors, golden["rpn/image_shape"], training=training)
        key = f"MultilevelROIGenerator/minsize16_score0.3/training{training}/scores"
        # Sigmoids in float32; the boxes are compared with the operation.
        np.testing.assert_allclose(ops.convert_to_numpy(scores), golden[key], atol=1e-6)


# ---- sampler --------------------------------------------------------------------------------


def test_all_regions_equal_reference(golden):
    sampler = again(layers.ROISampler(skip_subsampling=True))
    found = numpy(sampler(golden["proposals"], golden["gt_boxes"], golden["gt_classes"]))
    names = ("rois", "matched_gt_boxes", "matched_gt_classes", "matched_gt_indices")
    for name, values in zip(names, found, strict=False):
        np.testing.assert_array_equal(values, golden[f"ROISampler/skip_subsampling/{name}"])
    # The empty proposal, and the rows that fill up the objects, are not even background.
    np.testing.assert_array_equal(np.flatnonzero(~found[4][0]), [10, 17, 18])


def test_some_regions_are_chosen(golden):
    keras.utils.set_random_seed(0)
    sampler = layers.ROISampler(num_sampled_rois=12, foreground_fraction=0.25)
    inputs = (golden["proposals"], golden["gt_boxes"], golden["gt_classes"])
    boxes, _, classes, indices, counts = numpy(sampler(*inputs))
    assert boxes.shape == tuple(golden["ROISampler/n12_fg0.25/out_shape"])
    expected = golden["ROISampler/n12_fg0.25/num_fg_per_image"]
    np.testing.assert_array_equal((classes > 0).sum(-1), expected)
    assert counts.all() and (classes[:, :3] > 0).all()  # objects first
    np.testing.assert_array_equal(indices >= 0, classes > 0)
    assert not np.array_equal(boxes, numpy(sampler(*inputs))[0])


def test_seed_makes_the_choice_repeatable(golden):
    inputs = (golden["proposals"], golden["gt_boxes"], golden["gt_classes"])
    first, second = (
        again(layers.ROISampler(num_sampled_rois=6, seed=3))(*inputs).boxes for _ in range(2)
    )
    np.testing.assert_array_equal(ops.convert_to_numpy(first), ops.convert_to_numpy(second))


def test_fewer_regions_than_wanted_do_not_count():
    sampler = layers.ROISampler(mix_gt_boxes=False, num_sampled_rois=4)
    proposals = np.array([[[0, 0, 8, 8], [0, 0, 0, 0], [30, 30, 40, 40], [0, 0, 0, 0]]], "float32")
    objects = np.array([[[0, 0, 8, 9], [-1, -1, -1, -1]]], "float32")
    found = sampler(proposals, objects, np.array([[2, -1]]))
    classes, counts = numpy((found.gt_classes, found.counts))
    assert sorted(zip(classes[0].tolist(), counts[0].tolist(), strict=True)) == [
        (0, False),
        (0, False),
        (0, True),
        (2, True),
    ]


def test_images_without_objects_have_background():
    sampler = layers.ROISampler(num_sampled_rois=2)
    none = np.full((1, 3, 4), -1, "float32")
    proposals = np.array([[[0, 0, 8, 8], [4, 4, 9, 9]]], "float32")
    found = sampler(proposals, none, np.full((1, 3), -1))
    classes, counts, boxes = numpy((found.gt_classes, found.counts, found.gt_boxes))
    assert counts.all() and not classes.any() and not boxes.any()


def test_what_a_crowd_covers_is_no_background():
    sampler = layers.ROISampler(skip_subsampling=True, mix_gt_boxes=True)
    proposals = np.array(
        [[[0, 0, 10, 10], [22, 22, 30, 30], [20, 20, 60, 60], [70, 70, 80, 80], [55, 0, 66, 9]]],
        "float32",
    )
    objects = np.array([[[0, 0, 10, 11], [20, 20, 60, 60]]], "float32")
    is_crowd = np.array([[False, True]])
    found = sampler(proposals, objects, np.array([[1, 2]]), is_crowd)
    classes, counts = numpy((found.gt_classes, found.counts))
    # Two regions in the crowd, one of which is it, and the crowd's own box.
    assert classes[0].tolist() == [1, 0, 0, 0, 0, 1, 0]
    assert counts[0].tolist() == [True, False, False, True, True, True, False]
    without = sampler(proposals, objects, np.array([[1, 2]])).gt_classes
    assert ops.convert_to_numpy(without)[0].tolist() == [1, 0, 2, 0, 0, 1, 2]


def test_thresholds_leave_a_gap():
    sampler = layers.ROISampler(
        mix_gt_boxes=False,
        skip_subsampling=True,
        foreground_iou_threshold=0.7,
        background_iou_high_threshold=0.4,
        background_iou_low_threshold=0.1,
    )
    # Of an object of 10 x 10: all of it, half, a quarter, a twentieth.
    sides = np.array([10, 5, 2.5, 0.5])
    boxes = np.stack([0 * sides, 0 * sides, 0 * sides + 10, sides], -1)[None].astype("float32")
    found = sampler(boxes, np.array([[[0, 0, 10, 10]]], "float32"), np.array([[3]]))
    classes, counts = numpy((found.gt_classes, found.counts))
    assert classes[0].tolist() == [3, 0, 0, 0] and counts[0].tolist() == [True, False, True, False]


# ---- aligner --------------------------------------------------------------------------------


def test_aligner_equals_reference(golden):
    features = {str(level): golden[f"features/level{level}"] for level in range(2, 7)}
    found = again(layers.MultilevelROIAligner(14, 0.0))(features, golden["rois"])
    expected = golden["MultilevelROIAligner/crop14_offset0.0"]
    # float32 positions up to 64 on the finest level: shares of neighbours are right to 4e-6.
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, atol=3e-5)


def test_aligner_keeps_the_type_of_features_and_the_precision_of_boxes():
    ramp = np.broadcast_to(np.arange(256, dtype="float32")[:, None], (256, 256))[None, ..., None]
    features = {"2": ops.cast(ramp, "bfloat16")}
    boxes = np.array([[[500.0, 500, 508, 508]]], "float32")
    found = layers.MultilevelROIAligner(1)(features, boxes)
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    # Row 126 of the ramp; bfloat16 would take 504 for the middle, and 500 as well.
    assert float(ops.cast(found, "float32")[0, 0, 0, 0, 0]) == 126.0


# ---- masks ----------------------------------------------------------------------------------


def test_masks_of_objects_are_cropped_to_regions():
    sampler = again(layers.MaskSampler(4, 3))
    masks = np.zeros((1, 2, 8, 8), "uint8")
    masks[0, 0, :, :4] = 1  # the left half of the first object
    masks[0, 1] = 1
    boxes = np.array([[[0, 0, 16, 16], [40, 40, 48, 48]]], "float32")
    rois = np.array(
        [[[90, 90, 99, 99], [0, 8, 16, 24], [40, 40, 56, 48], [0, 4, 16, 12]]], "float32"
    )
    indices = np.array([[-1, 0, 1, 0]])
    gt_boxes = np.where(indices[..., None] >= 0, boxes[0][indices], 0)
    found = sampler(rois, gt_boxes, np.array([[0, 5, 6, 5]]), indices, masks)
    regions, classes, targets = numpy(found)
    np.testing.assert_array_equal(regions[0], rois[0, 1:])  # those with objects
    assert classes[0].tolist() == [5, 6, 5]
    assert not targets[0, 0].any()  # sees the right half only
    np.testing.assert_array_equal(targets[0, 1], np.repeat([[1], [1], [0], [0]], 4, 1))
    np.testing.assert_array_equal(targets[0, 2], np.repeat([[1, 1, 0, 0]], 4, 0))


def test_masks_that_fill_up_have_class_zero():
    sampler = layers.MaskSampler(4, 2)
    found = sampler(
        np.ones((1, 3, 4), "float32"),
        np.zeros((1, 3, 4), "float32"),
        np.array([[-1, 0, 2]]),
        np.array([[-1, -1, 0]]),
        np.ones((1, 1, 4, 4), "float32"),
    )
    assert ops.convert_to_numpy(found.classes)[0].tolist() == [2, 0]
