import numpy as np

from hortus.vision.visualization.confusion_matrix import draw_confusion_matrix


def test_diagonal_is_dark_and_the_rest_is_light():
    counts = np.diag([5, 5, 5])
    counts[0] = [0, 0, 0]
    picture = draw_confusion_matrix(counts, ["cat", "dog", "bird"])
    assert picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3
    darkness = 255 - picture.mean(axis=2)
    bottom, right = picture.shape[0], picture.shape[1]
    # The last cell of the diagonal, which is full, against the first, which is empty.
    label = right - 8 - 3 * 40
    full = darkness[36 + 2 * 40 + 3 : 36 + 3 * 40 - 3, label + 2 * 40 + 3 : label + 3 * 40 - 3]
    empty = darkness[36 + 3 : 36 + 40 - 3, label + 3 : label + 40 - 3]
    assert full.mean() > 100 > 5 > empty.mean()
    assert bottom > 36 + 3 * 40


def test_a_thousand_classes_still_fit():
    picture = draw_confusion_matrix(np.eye(1000), [str(i) for i in range(1000)])
    assert max(picture.shape) < 1100
