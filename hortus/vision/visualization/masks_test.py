import numpy as np
import pytest

from hortus.vision.visualization import masks


def test_classes_have_colours_of_their_own():
    colours = masks.class_colours(40)
    assert colours.dtype == np.uint8 and len({tuple(colour) for colour in colours}) == 40
    np.testing.assert_array_equal(masks.class_colours(5), colours[:5])


def test_overlay_colours_what_is_a_class():
    image = np.full((4, 6, 3), 100, np.uint8)
    mask = np.zeros((4, 6), int)
    mask[:, 2:4], mask[:, 4:] = 1, 255
    covered = masks.overlay_masks(image, mask[..., None], 2, background=0, opacity=0.5)
    assert (covered[:, :2] == 100).all()
    colour = masks.class_colours(2)[1].astype(float)
    np.testing.assert_allclose(covered[0, 2], 50 + colour / 2, atol=1)
    # The border beside it, in full.
    np.testing.assert_array_equal(covered[0, 3], colour)
    assert (covered[:, 4:] > 150).all()
    assert (masks.overlay_masks(image, mask, 2)[:, 0] != 100).any()


def test_numbers_that_are_no_class_stay_as_they_are():
    image = np.full((2, 2, 3), 100, np.uint8)
    covered = masks.overlay_masks(image, np.full((2, 2), 9), 3)
    np.testing.assert_array_equal(covered, image)


def test_side_by_side_has_a_picture_per_mask():
    image = np.zeros((20, 40, 3), np.uint8)
    truth, names = np.ones((20, 40), int), ["background", *[f"class number {i}" for i in range(9)]]
    many = np.arange(800).reshape(20, 40) % 10
    two = masks.draw_side_by_side(image, [truth], ["truth"], names, size=64)
    three = masks.draw_side_by_side(image, [truth, many], ["truth", "prediction"], names, size=64)
    assert three.shape[1] - two.shape[1] == 70
    # The legend of more classes needs more rows.
    assert three.shape[0] > two.shape[0] and three.dtype == np.uint8


def test_the_background_is_known_by_its_name():
    assert masks.background_class(["Background", "a"]) == 0
    assert masks.background_class(["road", "a"]) is None
    assert masks.background_class([]) is None


def test_an_image_of_another_size_is_an_error():
    with pytest.raises(ValueError, match="a mask of its size"):
        masks.overlay_masks(np.zeros((2, 2, 3), np.uint8), np.zeros((3, 2)), 2)
