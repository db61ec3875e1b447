import numpy as np
import pytest

from hortus.vision.visualization import boxes


def _grey(height=120, width=160):
    return np.full((height, width, 3), 90, np.uint8)


def test_frames_boxes_in_the_colour_of_their_class():
    picture = boxes.draw_boxes(_grey(), [[40, 20, 80, 60], [50, 90, 100, 150]], [1, 2])
    for number, row in ((1, (70, 20)), (2, (90, 90))):
        assert tuple(picture[row]) == boxes.class_colour(number)
    assert tuple(picture[60, 40]) == (90, 90, 90)  # inside
    assert tuple(picture[70, 59]) == boxes.class_colour(1)  # y1, x1 lie just outside
    assert tuple(picture[70, 60]) == (90, 90, 90)


def test_leaves_out_padding_low_scores_and_the_surplus():
    image = _grey()
    same = boxes.draw_boxes(image, [[-1, -1, -1, -1], [10, 10, 50, 50]], [-1, 0])
    np.testing.assert_array_equal(same, image)
    low = boxes.draw_boxes(image, [[10, 10, 50, 50]], [1], [0.2], min_score=0.3)
    np.testing.assert_array_equal(low, image)
    two = [[10, 10, 50, 50], [60, 60, 100, 140]]
    one = boxes.draw_boxes(image, two, [1, 2], [0.3, 0.9], max_boxes=1)
    np.testing.assert_array_equal(one, boxes.draw_boxes(image, two[1:], [2], [0.9]))


def test_leaves_the_image_alone_and_takes_grey_ones():
    image = _grey()[..., :1].copy()
    picture = boxes.draw_boxes(image, [[10, 10, 50, 50]], [1], [0.5], ["cell"], title="truth")
    assert picture.shape == (120, 160, 3) and picture.dtype == np.uint8
    assert (image == 90).all()


@pytest.mark.parametrize("side", [24, 1200])
def test_any_size_and_boxes_beyond_the_edge(side):
    image = _grey(side, side)
    picture = boxes.draw_boxes(image, [[-50, -50, side * 2, side * 2]], [3], [1.0], ["a" * 40] * 3)
    colour = boxes.class_colour(3)
    assert tuple(picture[side // 2, 0]) == colour and tuple(picture[-1, side // 2]) == colour
    thickness = (picture[side // 2, : side // 2] == colour).all(-1).sum()
    assert thickness == max(1, round(side / 220))


def test_labels_do_not_hide_each_other():
    close = [[50, 20, 110, 80], [51, 21, 110, 80]]
    apart = boxes.draw_boxes(_grey(), close, [1, 2], [0.9, 0.8], ["one", "two"])
    plates = [(apart == boxes.class_colour(n)).all(-1).sum() for n in (1, 2)]
    assert min(plates) > 250  # a whole plate each, beside their lines


def test_colours_differ_and_names_count_from_one():
    assert len({boxes.class_colour(number) for number in range(1, 81)}) == 80
    assert boxes.class_name(1, ["a", "b"]) == "a" and boxes.class_name(3, ["a", "b"]) == "3"


def test_says_what_is_wrong():
    with pytest.raises(ValueError, match="uint8"):
        boxes.draw_boxes(np.zeros((4, 4, 3), np.float32), [], [])
    with pytest.raises(ValueError, match="one length"):
        boxes.draw_boxes(_grey(), [[0, 0, 1, 1]], [1, 2])


def test_side_by_side():
    both = boxes.draw_side_by_side(_grey(), _grey(), gap=2)
    assert both.shape == (120, 322, 3) and (both[:, 160:162] == 255).all()
