import numpy as np

from hortus.vision.visualization.instances import draw_instances, paste_masks


def test_a_full_mask_is_its_box():
    boxes = [[2.0, 3.0, 6.0, 9.0], [0.0, 0.0, 0.0, 0.0], [-4.0, -4.0, 2.0, 2.0]]
    pasted = paste_masks(np.ones((3, 5, 5)), boxes, (8, 12))
    expected = np.zeros((8, 12), bool)
    expected[2:6, 3:9] = True
    np.testing.assert_array_equal(pasted[0], expected)
    assert not pasted[1].any()
    assert pasted[2].sum() == 4 and pasted[2, :2, :2].all()  # what lies in the image


def test_half_a_mask_is_half_the_box():
    mask = np.zeros((1, 4, 4))
    mask[0, :, :2] = 1.0
    pasted = paste_masks(mask, [[0, 0, 8, 8]], (8, 8))
    np.testing.assert_array_equal(pasted[0], np.broadcast_to(np.arange(8) < 4, (8, 8)))


def test_neighbours_of_one_class_have_colours_of_their_own():
    image = np.zeros((60, 60, 3), np.uint8)
    masks = np.zeros((3, 60, 60), bool)
    masks[0, 20:40, 10:30] = masks[1, 20:40, 30:50] = masks[2, 50:, 50:] = True
    boxes = [[20, 10, 40, 30], [20, 30, 40, 50], [50, 50, 60, 60]]
    scores = [0.9, 0.8, 0.1]
    drawn = draw_instances(image, boxes, [1, 1, 1], scores, ["cell"], masks=masks, min_score=0.3)
    assert drawn[30, 20].any() and (drawn[30, 20] != drawn[30, 40]).any()
    assert not drawn[55, 55].any()  # its score is too low
    assert not image.any()


def test_many_objects_have_no_names():
    image = np.full((64, 64, 1), 90, np.uint8)
    places = [(y, x) for y in range(2, 62, 10) for x in range(2, 62, 10)]
    boxes = np.array([[y, x, y + 6, x + 6] for y, x in places], float)
    masks = paste_masks(np.ones((36, 2, 2)), boxes, (64, 64))
    drawn = draw_instances(image, boxes, np.ones(36, int), class_names=["cell"], masks=masks)
    outside = ~masks.any(axis=0)
    np.testing.assert_array_equal(drawn[outside], 90)


def test_without_masks_there_are_boxes():
    image = np.zeros((40, 40, 3), np.uint8)
    drawn = draw_instances(image, [[5, 5, 30, 30]], [1], title="truth")
    assert drawn[5, 20].any() and not drawn[20, 20].any()
