import keras
import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.ops import anchors

CASES = {
    "l3_7_s3_ar3_a4_256": (anchors.AnchorGenerator(3, 7, 3, (0.5, 1.0, 2.0), 4.0), (256, 256)),
    "l2_6_s1_ar3_a8_256": (anchors.AnchorGenerator(2, 6, 1, (0.5, 1.0, 2.0), 8.0), (256, 256)),
    "l3_5_s2_ar2_a3_100x140_nondivisible": (
        anchors.AnchorGenerator(3, 5, 2, [1.0, 2.0], 3.0),
        (100, 140),
    ),
}


def check(levels, name):
    golden = np.load(reference_dir() / "golden/anchors.npz")
    keys = {key for key in golden.files if key.startswith(f"build_anchor_generator/{name}/")}
    assert len(keys) == len(levels)
    for level, values in levels.items():
        expected = golden[f"build_anchor_generator/{name}/level{level}"]
        # float32 rounding of coordinates up to 1,000
        np.testing.assert_allclose(ops.convert_to_numpy(values), expected, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_equals_reference(name):
    generator, size = CASES[name]
    levels = generator(size)
    assert all(isinstance(x, np.ndarray) and x.dtype == "float32" for x in levels.values())
    check(levels, name)
    flat = generator.boxes(size)
    first = next(iter(levels.values()))[0, 0]
    np.testing.assert_array_equal(flat[: generator.num_per_location].ravel(), first)
    assert len(flat) == sum(x.size for x in levels.values()) / 4


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="shapes are static on JAX")
@pytest.mark.parametrize("name", CASES)
def test_size_known_in_the_graph_only_on_tensorflow(name):
    import tensorflow as tf

    generator, size = CASES[name]
    levels = tf.function(generator, input_signature=[tf.TensorSpec([2], tf.int32)])(size)
    check(levels, name)


def test_constants_are_made_once_and_kept():
    generator, size = CASES["l2_6_s1_ar3_a8_256"]
    again = anchors.AnchorGenerator(2, 6, 1, [0.5, 1.0, 2.0], 8.0)
    assert generator(size)["2"] is again(size)["2"]
    with pytest.raises(ValueError, match="read-only"):
        generator(size)["2"][0] = 0


def test_split_levels_is_the_way_back():
    generator, size = CASES["l3_5_s2_ar2_a3_100x140_nondivisible"]
    levels, flat = generator(size), generator.boxes(size)
    for level, part in anchors.split_levels(np.stack([flat, flat]), levels).items():
        np.testing.assert_array_equal(ops.convert_to_numpy(part)[1], levels[level])
    labels = np.arange(len(flat))[:, None]
    parts = anchors.split_levels(labels, levels)
    assert parts["4"].shape == (7, 9, 4)
    assert int(parts["4"][0, 0, 1]) == 13 * 18 * 4 + 1


def test_inside():
    boxes = np.array([[0, 0, 5, 5], [-1, 0, 5, 5], [0, 0, 5, 8]], "float32")
    assert np.array(anchors.inside(boxes, (5, 7))).tolist() == [True, False, False]
