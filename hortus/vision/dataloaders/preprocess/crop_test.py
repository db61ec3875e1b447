import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.preprocess import crop


@pytest.fixture
def image():
    # Smooth, so that it survives JPEG; and no two pixels are equal.
    y, x = np.meshgrid(np.linspace(0, 255, 40), np.linspace(0, 255, 60), indexing="ij")
    return tf.constant(np.stack([y, x, (x + y) / 2], axis=-1).astype(np.uint8))


# A JPEG's colours are stored at half the size; at the edge of a crop they are not interpolated with
# what lies outside, which is a matter of 2 or 3 of 255 in the last rows and columns.
ENCODERS = {"jpeg": (tf.io.encode_jpeg, 3), "png": (tf.io.encode_png, 0)}


def test_a_random_crop_keeps_to_its_ranges(image):
    areas, ratios = [], []
    for i in range(40):
        height, width, _ = preprocess.random_crop_image(
            image, aspect_ratio_range=(0.5, 1.5), area_range=(0.2, 0.6), seed=[0, i]
        ).shape
        areas.append(height * width / (40 * 60))
        ratios.append(width / height)
    # Sides are whole pixels of at least 20, so shares are off by some percent.
    assert 0.19 < min(areas) < 0.3 and 0.5 < max(areas) < 0.62
    assert 0.47 < min(ratios) < 0.8 and 1.2 < max(ratios) < 1.56


def test_a_random_crop_is_determined_by_its_seed(image):
    crops = [preprocess.random_crop_image(image, seed=seed) for seed in ([1, 2], [1, 2], [1, 3])]
    np.testing.assert_array_equal(crops[0], crops[1])
    assert crops[0].shape != crops[2].shape or np.any(crops[0] != crops[2])


@pytest.mark.parametrize("kind", ENCODERS)
def test_a_decoded_crop_is_the_crop_of_the_decoded_image(image, kind):
    encode, tolerance = ENCODERS[kind]
    encoded = encode(image)
    decoded = preprocess.decode_image(encoded)
    for ours, expected in (
        (
            preprocess.decode_and_center_crop(encoded, 0.5),
            preprocess.center_crop_image(decoded, 0.5),
        ),
        (
            preprocess.decode_and_random_crop(encoded, seed=[5, 6]),
            preprocess.random_crop_image(decoded, seed=[5, 6]),
        ),
    ):
        np.testing.assert_allclose(
            ours.numpy().astype(int), expected.numpy(), rtol=0, atol=tolerance
        )
        np.testing.assert_array_equal(ours[1:-2, 1:-2], expected[1:-2, 1:-2])


def gif(image):
    import io

    from PIL import Image

    stream = io.BytesIO()
    frames = [Image.fromarray(frame) for frame in (image.numpy(), 255 - image.numpy())]
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:])
    return stream.getvalue()


def bmp(image):
    import io

    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image.numpy()).save(stream, "BMP")
    return stream.getvalue()


@pytest.mark.parametrize(("encode", "tolerance"), [(gif, 40), (bmp, 0), (tf.io.encode_png, 0)])
def test_images_of_all_kinds_are_read(image, encode, tolerance):
    decoded = preprocess.decode_image(encode(image))
    # A GIF has 256 colours; the second of its frames would be 255 off.
    assert decoded.shape == image.shape
    assert np.abs(decoded.numpy().astype(int) - image.numpy()).max() <= tolerance


def test_grey_images_get_three_channels(image):
    decoded = preprocess.decode_image(tf.io.encode_png(image[..., :1]))
    np.testing.assert_array_equal(decoded, np.repeat(image[..., :1], 3, axis=-1))


def test_windows_work_in_a_graph_without_a_known_size(image):
    @tf.function(input_signature=[tf.TensorSpec([None, None, 3], tf.uint8)])
    def cropped(image):
        return preprocess.center_crop_image(image, 0.5)

    np.testing.assert_array_equal(cropped(image), image[10:30, 20:40])
    assert crop.center_window(tf.constant([5, 9]), 1.0).numpy().tolist() == [0, 2, 5, 5]
