import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.ops import masks


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/mask_paste.npz")


def test_paste_equals_reference(golden):
    x, y, w, h = golden["boxes_used"].T
    boxes = np.stack([y, x, y + h, x + w], axis=-1)
    pasted = ops.convert_to_numpy(masks.paste(golden["masks"], boxes, (64, 80)))
    np.testing.assert_array_equal(pasted > 0.5, golden["paste_instance_masks_v2_64x80"])


@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_crop_equals_reference(offset):
    golden = np.load(reference_dir() / "golden/roi.npz")
    cropped = masks.crop(
        golden["gt_masks_cropped28"][:, :5],
        golden["mask_boxes"],
        golden["mask_target_boxes"],
        14,
        offset,
    )
    expected = golden[f"crop_mask_in_target_box/out14_offset{offset}"]
    # float32 positions up to 256, times slopes up to 3 per cell
    np.testing.assert_allclose(ops.convert_to_numpy(cropped), expected, atol=1e-4)


def test_overlaps_are_near_those_of_the_reference(golden):
    inputs = [golden[f"ov_{name}"][None] for name in ("masks", "boxes", "gt_masks", "gt_boxes")]
    found = np.stack([ops.convert_to_numpy(x) for x in masks.overlaps(*inputs, (64, 64))])
    # Noise for masks, of which the reference, sampling otherwise, sees some other pixels.
    expected = golden["instance_masks_overlap_out64x64"]
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_a_whole_box_is_its_pixels():
    boxes = np.array([[2.0, 3.0, 6.0, 9.0], [0.0, 0.0, 0.0, 0.0]])
    pasted = ops.convert_to_numpy(masks.paste(np.ones((2, 4, 6)), boxes, (8, 12)))
    expected = np.zeros((8, 12))
    expected[2:6, 3:9] = 1
    np.testing.assert_allclose(pasted[0], expected, atol=1e-6)
    assert not pasted[1].any()


def test_overlaps_of_whole_boxes_are_those_of_the_boxes():
    ours, theirs = np.array([[[0.0, 0, 8, 8]]]), np.array([[[4.0, 0, 12, 8], [20, 20, 24, 24]]])
    whole = np.ones((1, 2, 8, 8))
    iou, share = masks.overlaps(whole[:, :1], ours, whole, theirs, (32, 32))
    np.testing.assert_allclose(ops.convert_to_numpy(iou)[0, 0], [32 / 96, 0], atol=1e-6)
    np.testing.assert_allclose(ops.convert_to_numpy(share)[0, 0], [0.5, 0], atol=1e-6)


def test_a_mask_seen_through_its_own_box_is_itself():
    mask = np.random.RandomState(0).uniform(size=(1, 6, 6)).astype("float32")
    box = np.array([[3.0, 5.0, 15.0, 29.0]])
    seen = masks.crop(mask, box, box, 6, sample_offset=0.5, mask_offset=0.5)
    np.testing.assert_allclose(ops.convert_to_numpy(seen), mask, atol=1e-5)
