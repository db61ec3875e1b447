"""Functions for clips: [frames, height, width, channels], and for sequences of frames."""

import tensorflow as tf

from hortus.vision.dataloaders.preprocess import crop
from hortus.vision.dataloaders.randomness import Rng, Seed


def decode_frames(frames: tf.Tensor, channels: int = 3, image_format: str = "jpeg") -> tf.Tensor:
    """Decodes encoded frames [n] of one size to uint8 [n, height, width, channels].

    `image_format` is `jpeg`, or anything else to look at each frame.
    """
    if image_format == "jpeg":
        decode = lambda frame: tf.io.decode_jpeg(frame, channels=channels)  # noqa: E731
    else:
        decode = lambda frame: crop.decode_image(frame, channels)  # noqa: E731
    spec = tf.TensorSpec([None, None, channels], tf.uint8)
    return tf.map_fn(decode, frames, fn_output_signature=spec)


def sample_sequence(
    sequence: tf.Tensor, num_steps: int, random: bool, stride: int = 1, seed: Seed = None
) -> tf.Tensor:
    """Takes `num_steps` entries, `stride` apart, from the middle or from a random place.

    A sequence that is too short is taken again from its begin.
    """
    length = tf.shape(sequence)[0]
    room = tf.maximum(length - num_steps * stride, 0)
    begin = Rng(seed).integer(0, room + 1) if random else room // 2
    places = begin + tf.range(num_steps) * stride
    return _take(sequence, places % length, num_steps)


def sample_linspace_sequence(
    sequence: tf.Tensor, num_windows: int, num_steps: int, stride: int = 1
) -> tf.Tensor:
    """Takes `num_windows` clips of `num_steps` entries, spread evenly over the sequence.

    Returns:
      The clips one after another, [num_windows * num_steps, ...].
    """
    length = tf.shape(sequence)[0]
    room = tf.cast(tf.maximum(length - num_steps * stride, 0), tf.float32)
    begins = tf.cast(tf.linspace(0.0, room, num_windows), tf.int32)
    places = begins[:, tf.newaxis] + tf.range(num_steps) * stride
    return _take(sequence, tf.reshape(places, [-1]) % length, num_windows * num_steps)


def sample_segment_sequence(
    sequence: tf.Tensor, num_frames: int, is_training: bool, seed: Seed = None
) -> tf.Tensor:
    """Cuts the sequence into `num_frames` equal parts and takes one entry of each.

    It is a random one in training and the middle one otherwise.
    """
    length = tf.shape(sequence)[0]
    segment = tf.cast(length, tf.float32) / num_frames
    begins = tf.floor(tf.range(num_frames, dtype=tf.float32) * segment)
    inside = Rng(seed).uniform(shape=[num_frames]) if is_training else 0.5
    places = tf.cast(begins + tf.floor(segment * inside), tf.int32)
    return _take(sequence, tf.clip_by_value(places, 0, length - 1), num_frames)


def crop_image(
    frames: tf.Tensor,
    target_height: int,
    target_width: int,
    random: bool = False,
    num_crops: int = 1,
    seed: Seed = None,
) -> tf.Tensor:
    """Cuts the same rectangle out of all frames.

    Args:
      frames: [n, height, width, channels].
      target_height: height of the crop.
      target_width: width of the crop.
      random: whether the place is random; it is the middle otherwise.
      num_crops: places, evenly from left to right (or top to bottom where that is longer), at the
        begin of the other side; not random. The crops follow one another in the first dimension.
      seed: two integers, see the package.

    Returns:
      [n * num_crops, target_height, target_width, channels].
    """
    target = tf.constant([target_height, target_width])
    room = tf.maximum(tf.shape(frames)[1:3] - target, 0)
    if random:
        place = tf.cast(room + 1, tf.float32) * Rng(seed).uniform(shape=[2])
        begins = [tf.cast(place, tf.int32)]
    elif num_crops == 1:
        begins = [room // 2]
    else:
        shares = tf.linspace(0.0, 1.0, num_crops)
        along = tf.cast(tf.cast(tf.reduce_max(room), tf.float32) * shares, tf.int32)
        across = tf.zeros_like(along)
        is_wide = room[1] >= room[0]
        places = tf.where(is_wide, tf.stack([across, along]), tf.stack([along, across]))
        begins = tf.unstack(tf.transpose(places), num_crops)
    crops = [
        frames[:, begin[0] : begin[0] + target_height, begin[1] : begin[1] + target_width, :]
        for begin in begins
    ]
    crops = tf.concat(crops, axis=0)
    crops.set_shape([None, target_height, target_width, frames.shape[-1]])
    return crops


def resize_smallest(frames: tf.Tensor, min_resize: int) -> tf.Tensor:
    """Resizes so that the shorter side has `min_resize` pixels; keeps shape and type."""
    size = tf.shape(frames)[1:3]
    height, width = size[0], size[1]
    target = tf.maximum(size * min_resize // tf.minimum(height, width), min_resize)
    return tf.cast(tf.image.resize(frames, target), frames.dtype)


def random_crop_resize(
    frames: tf.Tensor,
    output_h: int,
    output_w: int,
    aspect_ratio: tuple[float, float] = (0.5, 2.0),
    area_range: tuple[float, float] = (0.49, 1.0),
    seed: Seed = None,
) -> tf.Tensor:
    """Cuts the same random rectangle out of all frames and resizes it; keeps the type."""
    window = crop.random_window(tf.shape(frames)[1:3], aspect_ratio, area_range, 100, seed)
    top, left, height, width = tf.unstack(window)
    cropped = frames[:, top : top + height, left : left + width, :]
    return tf.cast(tf.image.resize(cropped, [output_h, output_w]), frames.dtype)


def random_flip_left_right(frames: tf.Tensor, seed: Seed = None) -> tf.Tensor:
    """Mirrors all frames, or none, left to right."""
    return tf.cond(
        Rng(seed).chance(0.5), lambda: tf.reverse(frames, axis=[2]), lambda: tf.identity(frames)
    )


def random_rotation(frames: tf.Tensor, seed: Seed = None) -> tf.Tensor:
    """Turns all frames by the same multiple of 90 degrees; square frames keep their shape."""
    return tf.image.rot90(frames, Rng(seed).integer(0, 4))


def normalize_image(
    frames: tf.Tensor, zero_centering_image: bool, dtype: tf.DType = tf.float32
) -> tf.Tensor:
    """Maps frames of 0..255 to 0..1, or to -1..1 when `zero_centering_image`."""
    frames = tf.cast(frames, dtype)
    return frames * (2.0 / 255.0) - 1.0 if zero_centering_image else frames * (1.0 / 255.0)


def _take(sequence: tf.Tensor, places: tf.Tensor, num_places: int) -> tf.Tensor:
    taken = tf.gather(sequence, places)
    taken.set_shape([num_places, *sequence.shape[1:]])
    return taken
