import numpy as np

from hortus.vision.visualization.pr_curves import draw_pr_curves, line_colour

RECALL = np.linspace(0, 1, 101)


def places(picture, number):
    return np.argwhere((picture[34:394, 46:406] == line_colour(number)).all(-1))


def test_lines_lie_where_the_numbers_are():
    curves = {"half": (RECALL, np.full(101, 0.5)), "falling": (RECALL, 1 - RECALL)}
    picture = draw_pr_curves(curves, [0.5, 0.25], "IoU 0.5")
    half, falling = places(picture, 1), places(picture, 2)
    assert np.abs(half[:, 0] - 180).max() <= 2  # rows, of 360
    assert len(np.unique(half[:, 1])) > 300  # all recalls
    assert np.abs(falling[:, 0] - falling[:, 1]).max() <= 3


def test_many_classes_have_no_legend():
    few = draw_pr_curves({"a": (RECALL, RECALL)})
    many = draw_pr_curves({str(i): (RECALL, RECALL) for i in range(80)})
    assert many.shape[1] < few.shape[1] and many.dtype == np.uint8


def test_no_classes():
    assert draw_pr_curves({}).ndim == 3
