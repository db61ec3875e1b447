import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.ops import roi_align


@pytest.mark.parametrize("size", [7, 14])
@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_equals_reference(compiled, size, offset):
    golden = np.load(reference_dir() / "golden/roi.npz")
    features = {str(level): golden[f"features/level{level}"] for level in range(2, 7)}

    def run(features, boxes):
        return roi_align.multilevel_roi_align(features, boxes, size, offset)

    found = ops.convert_to_numpy(compiled(run)(features, golden["rois"]))
    expected = golden[f"MultilevelROIAligner/crop{size}_offset{offset}"]
    # float32 positions up to 64 on the finest level: shares of neighbours are right to 4e-6.
    np.testing.assert_allclose(found, expected, atol=3e-5)


def test_levels():
    sides = np.array([1.0, 111, 112, 223, 224, 448, 5000, 0])
    boxes = np.stack([0 * sides, 0 * sides, sides, sides], axis=-1).astype("float32")
    levels = ops.convert_to_numpy(roi_align.box_levels(ops.convert_to_tensor(boxes), 2, 5))
    assert levels.tolist() == [2, 2, 3, 3, 4, 5, 5, 2]


def test_a_ramp_is_sampled_exactly():
    ramp = np.broadcast_to(np.arange(16, dtype="float32")[:, None], (16, 16))[None, ..., None]
    boxes = np.array([[[8.0, 8.0, 40.0, 24.0]]], "float32")  # rows 2 to 10 of level 2
    found = roi_align.multilevel_roi_align({"2": ramp}, boxes, 4)
    np.testing.assert_allclose(ops.convert_to_numpy(found)[0, 0, :, 0, 0], [3, 5, 7, 9], rtol=1e-6)
