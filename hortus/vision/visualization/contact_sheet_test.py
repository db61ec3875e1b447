import numpy as np
import pytest

from hortus.vision.visualization.contact_sheet import RIGHT, WRONG, captioned, draw_contact_sheet


def test_pictures_of_all_sizes_have_their_place():
    images = [np.full((20, 40, 3), 200, np.uint8), np.full((64, 10, 1), 50, np.uint8)] * 3
    sheet = draw_contact_sheet(images, captions=["a"] * 6, columns=4, size=32)
    assert sheet.dtype == np.uint8
    assert sheet.shape == (8 + 2 * (32 + 18 + 8), 8 + 4 * (32 + 8), 3)
    middle = sheet[8 + 16, 8 + 16]
    np.testing.assert_array_equal(middle, [200, 200, 200])
    np.testing.assert_array_equal(sheet[8 + 16, 8 + 40 + 16], [50, 50, 50])


def test_frames_tell_right_from_wrong():
    images = [np.zeros((16, 16, 3), np.uint8)] * 2
    sheet = draw_contact_sheet(images, colours=[RIGHT, WRONG], size=32)
    np.testing.assert_array_equal(sheet[8, 8], RIGHT)
    np.testing.assert_array_equal(sheet[8, 48], WRONG)


def test_long_captions_are_cut_and_nothing_is_refused():
    draw_contact_sheet([np.zeros((8, 8, 3), np.uint8)], captions=["x" * 500], size=32)
    with pytest.raises(ValueError, match="at least one"):
        draw_contact_sheet([])
    with pytest.raises(ValueError, match="uint8"):
        draw_contact_sheet([np.zeros((8, 8, 3), np.float32)])


def test_a_caption_is_below_the_picture_and_small_pictures_grow():
    small = captioned(np.full((10, 20, 3), 90, np.uint8), "a", least=50)
    assert small.size == (60, 30 + 18)  # three times as large
    pixels = np.asarray(small)
    assert np.all(pixels[:30] == 90) and pixels[30:].min() < 128 and pixels[30:].max() == 255
    assert captioned(np.zeros((70, 60, 1), np.uint8), "", least=50).size == (60, 70 + 18)
