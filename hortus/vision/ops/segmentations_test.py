import numpy as np
import pytest
from pycocotools import mask as oracle

from hortus.vision.ops import segmentations

pytestmark = pytest.mark.filterwarnings("ignore:__array__")  # of pycocotools


@pytest.mark.parametrize("seed", range(10))
def test_polygons_are_drawn_as_pycocotools_does(seed):
    rng = np.random.default_rng(seed)
    height, width = (int(side) for side in rng.integers(5, 90, 2))
    polygons = [
        # Some corners lie outside of the image, and most of these polygons cross themselves.
        (rng.uniform(-0.2, 1.2, (rng.integers(3, 12), 2)) * [width, height]).reshape(-1).tolist()
        for _ in range(rng.integers(1, 4))
    ]
    expected = oracle.merge(oracle.frPyObjects(polygons, height, width))
    code = segmentations.encode_segmentation(polygons, height, width)
    assert code == expected["counts"]
    bitmap = oracle.decode(expected)
    np.testing.assert_array_equal(segmentations.decode_bitmap(code, height, width), bitmap)
    assert segmentations.encode_bitmap(bitmap) == code
    assert segmentations.pixels_of(code) == height * width


def test_run_lengths_are_taken_in_both_ways():
    counts = {"size": [10, 10], "counts": [22, 4, 74]}
    code = segmentations.encode_segmentation(counts, 10, 10)
    assert segmentations.decode_bitmap(code, 10, 10).sum() == 4
    for text in (code, code.decode()):
        compressed = {"size": [10, 10], "counts": text}
        assert segmentations.encode_segmentation(compressed, 10, 10) == code


@pytest.mark.parametrize("nothing", [None, [], {}, [[]], [[1.0, 2.0, 3.0, 4.0]]])
def test_nothing_is_an_empty_code(nothing):
    assert segmentations.encode_segmentation(nothing, 10, 10) == b""
    assert not segmentations.decode_bitmap(b"", 10, 10).any()


def test_one_polygon_may_stand_without_the_outer_list():
    square = [2, 2, 2, 6, 6, 6, 6, 2]
    code = segmentations.encode_segmentation(square, 10, 10)
    assert code == segmentations.encode_segmentation([square], 10, 10)
    assert segmentations.decode_bitmap(code, 10, 10).sum() == 16


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        (
            {"size": [9, 10], "counts": [90]},
            r"height and width \[9, 10\], the image has \[10, 10\]",
        ),
        ({"size": [10, 10], "counts": [90]}, "add up to 90, the image has 100 pixels"),
        ({"size": [10, 10], "counts": [101, -1]}, "whole numbers from 0"),
        ({"size": [10, 10], "counts": "0"}, "add up to 0, the image has 100"),
        ({"size": [10, 10], "counts": "a b"}, "no run-lengths"),
        ({"size": [10, 10], "counts": 7}, "counts as a list or as text"),
        ({"counts": "0"}, "height and width None"),
        ([[1, 2, 3]], "list of x, y"),
        ([[1, 2, 3, "4", 5, 6]], "list of x, y"),
        ([[1, 2, 3, float("nan"), 5, 6]], "no numbers"),
        ("polygon", "polygons or run-lengths, got 'polygon'"),
    ],
)
def test_what_is_wrong_is_said(broken, text):
    with pytest.raises(ValueError, match=text):
        segmentations.encode_segmentation(broken, 10, 10)


@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_objects_are_encoded_in_one_go(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, (1 + seed, 37)).astype(np.int32)
    labels[:, 20:30] = 3
    codes = segmentations.encode_labels(labels, [4, 3, 77, 1])
    assert codes[2] == b""
    for number, code in zip((4, 3, 77, 1), codes, strict=True):
        if (labels == number).any():
            assert code == segmentations.encode_bitmap(labels == number)
