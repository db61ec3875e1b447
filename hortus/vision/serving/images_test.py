import io
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.serving import images
from hortus.vision.serving.images import UnreadableImageError, decode, find_images, read_image


def encode(image, form, **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "BMP", "GIF", "WEBP"])
def test_ordinary_files_are_read_as_evaluation_reads_them(photo, form):
    encoded = encode(photo, form)
    picture = decode(encoded)
    np.testing.assert_array_equal(picture.pixels, preprocess.decode_image(tf.constant(encoded)))
    assert picture.encoded == encoded and picture.notes == ()
    assert picture.size == (64, 96)


def test_grey_images_have_three_equal_channels(photo):
    grey = photo.convert("L")
    pixels = decode(encode(grey, "PNG")).pixels
    np.testing.assert_array_equal(pixels, np.repeat(np.asarray(grey)[..., None], 3, axis=2))


def test_the_alpha_channel_is_left_out(photo):
    see_through = photo.copy()
    see_through.putalpha(10)
    np.testing.assert_array_equal(decode(encode(see_through, "PNG")).pixels, np.asarray(photo))


def test_colours_of_a_palette_are_looked_up(photo):
    few = photo.quantize(16)
    for form in ("PNG", "BMP", "GIF"):
        np.testing.assert_array_equal(
            decode(encode(few, form)).pixels, np.asarray(few.convert("RGB"))
        )


def test_cmyk_is_converted(photo):
    # Both the conversion and JPEG lose a little: 12 of 255, measured.
    pixels = decode(encode(photo.convert("CMYK"), "JPEG", quality=100)).pixels
    assert np.abs(pixels.astype(int) - np.asarray(photo)).max() <= 20


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_16_bits_keep_their_range(photo, form):
    grey = np.asarray(photo.convert("L"))
    encoded = encode(Image.fromarray(grey.astype(np.uint16) * 257), form)
    np.testing.assert_array_equal(decode(encoded).pixels[..., 1], grey)


def test_32_bits_per_channel_have_no_known_range(photo):
    encoded = encode(Image.fromarray(np.asarray(photo.convert("L"), np.float32)), "TIFF")
    with pytest.raises(UnreadableImageError, match="32 bits per channel"):
        decode(encoded)


def test_what_evaluation_cannot_read_is_read_by_pillow(photo):
    picture = decode(encode(photo, "TIFF"))
    np.testing.assert_array_equal(picture.pixels, np.asarray(photo))
    assert picture.encoded is None


@pytest.mark.parametrize("orientation", range(2, 9))
def test_photos_are_turned_upright(photo, orientation):
    turned = photo.transpose(
        {
            2: Image.Transpose.FLIP_LEFT_RIGHT,
            3: Image.Transpose.ROTATE_180,
            4: Image.Transpose.FLIP_TOP_BOTTOM,
            5: Image.Transpose.TRANSPOSE,
            6: Image.Transpose.ROTATE_90,
            7: Image.Transpose.TRANSVERSE,
            8: Image.Transpose.ROTATE_270,
        }[orientation]
    )
    exif = Image.Exif()
    exif[0x0112] = orientation
    encoded = encode(turned, "PNG", exif=exif)
    picture = decode(encoded)
    np.testing.assert_array_equal(picture.pixels, np.asarray(photo))
    assert picture.encoded is None and picture.notes == ("turned upright by its EXIF data",)
    stored = decode(encoded, upright=False)
    np.testing.assert_array_equal(stored.pixels, np.asarray(turned))
    assert stored.encoded == encoded and stored.notes == ()


@pytest.mark.parametrize("form", ["GIF", "PNG", "WEBP", "TIFF"])
def test_of_an_animation_the_first_frame_counts(photo, form):
    other = photo.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    options = {"lossless": True} if form == "WEBP" else {}
    encoded = encode(photo, form, save_all=True, append_images=[other, other], **options)
    picture = decode(encoded)
    assert picture.notes[0].startswith("the first of ")
    # A GIF has 256 colours.
    difference = np.abs(picture.pixels.astype(int) - np.asarray(photo)).mean()
    assert difference < (6 if form == "GIF" else 1e-9)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"no image at all", "not an image, or damaged"),
        (b"\x89PNG\r\n\x1a\n and nothing", "not an image, or damaged"),
    ],
)
def test_what_is_no_image_has_a_reason(tmp_path, content, reason):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(UnreadableImageError, match=reason):
        read_image(tmp_path / "a.png")


@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_a_file_that_was_cut_short_is_not_half_an_image(photo, form):
    encoded = encode(photo, form)
    with pytest.raises(UnreadableImageError, match="damaged"):
        decode(encoded[: len(encoded) // 2])


def test_a_huge_image_is_refused_before_it_is_decoded():
    # A header that promises 60000 x 60000 pixels, and no pixels.
    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    encoded = (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    )
    limit = Image.MAX_IMAGE_PIXELS
    with pytest.raises(
        UnreadableImageError, match=r"60000 x 60000 pixels, more than 200 million.*max_pixels"
    ):
        decode(encoded)
    assert limit == Image.MAX_IMAGE_PIXELS
    with pytest.raises(UnreadableImageError, match="more than 0 million"):
        decode(encode(Image.new("RGB", (9, 9)), "PNG"), max_pixels=80)


def test_files_folders_and_patterns_are_found_once(tmp_path, photo):
    for name in ("a.png", "b/c.JPG", "b/d.txt", ".hidden.png", ".git/e.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = find_images([tmp_path, tmp_path / "a.png", str(tmp_path / "b" / "*")])
    assert [image.name for image in found] == ["a.png", "b/c.JPG", "d.txt"]
    assert [image.name for image in find_images(tmp_path / "b" / "d.txt")] == ["d.txt"]


def test_a_path_that_is_not_there_is_an_error(tmp_path):
    (tmp_path / "photo.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"foto.png: no such file.*Did you mean .*photo.png"):
        find_images(tmp_path / "foto.png")
    with pytest.raises(DataError, match="no file matches"):
        find_images(str(tmp_path / "*.jpg"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no images in this folder"):
        find_images(tmp_path / "empty")
    with pytest.raises(DataError, match="no images were named"):
        find_images([])


def test_a_file_that_cannot_be_opened_is_unreadable(tmp_path):
    with pytest.raises(UnreadableImageError, match="cannot be opened: No such file"):
        images.read_image(tmp_path / "gone.png")
