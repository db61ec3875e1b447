"""Masks in PNG files: the class number of every pixel.

TensorFlow decodes a palette image to its colours, but a mask is about the numbers behind them. So
the header of such a file is changed to say that the numbers are greys, which decodes them as such.
"""

import zlib

import numpy as np
import tensorflow as tf

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Places in the file: the first chunk is the header, with a checksum at its end.
_DEPTH, _COLOUR_TYPE, _CHECKSUM, _HEADER_END = 24, 25, 29, 33
GREY, PALETTE = 0, 3


def _checksum_change() -> np.ndarray:
    """What the checksum changes by, whatever else the header says, as CRCs are linear."""
    header = bytearray(b"IHDR" + bytes(13))
    grey = zlib.crc32(header)
    header[_COLOUR_TYPE - len(SIGNATURE) - 4] = PALETTE
    change = grey ^ zlib.crc32(header)
    return np.frombuffer(change.to_bytes(4, "big"), np.uint8)


_CHANGE = _checksum_change()
_BYTES = np.array([bytes([value]) for value in range(256)], object)


def decode_mask(encoded: tf.Tensor) -> tf.Tensor:
    """Decodes a PNG of class numbers, int32 [height, width, 1].

    Palette images give the numbers, not the colours; grey ones their greys, of 8 or 16 bits, or of
    fewer; a colour image whose channels are equal counts as grey. Other colours, and other formats
    than PNG, are an error.
    """
    is_png = tf.strings.substr(encoded, 0, len(SIGNATURE)) == SIGNATURE
    what = "a mask must be a PNG file, whose compression changes no pixel; this is none"
    with tf.control_dependencies([tf.debugging.Assert(is_png, [what])]):
        encoded = tf.identity(encoded)
    header = tf.io.decode_raw(tf.strings.substr(encoded, 0, _HEADER_END), tf.uint8)
    depth = tf.cast(header[_DEPTH], tf.int32)
    is_palette = header[_COLOUR_TYPE] == PALETTE
    encoded = tf.cond(is_palette, lambda: _as_grey(encoded, header), lambda: encoded)

    def decode(dtype: tf.DType) -> tf.Tensor:
        return tf.cast(tf.io.decode_png(encoded, channels=0, dtype=dtype), tf.int32)

    mask = tf.cond(depth > 8, lambda: decode(tf.uint16), lambda: decode(tf.uint8))
    # Greys of fewer than 8 bits are stretched to the full range.
    levels = tf.bitwise.left_shift(1, tf.minimum(depth, 8)) - 1
    mask = mask // (255 // levels)
    # The second and fourth channel, where there are any, are the opacity.
    colours = mask[..., :3]
    is_colour = tf.shape(colours)[-1] == 3
    is_grey = tf.logical_or(
        tf.logical_not(is_colour), tf.reduce_all(tf.equal(colours[..., :1], colours))
    )
    what = "a mask must hold class numbers, as greys or by a palette; this is a colour image"
    with tf.control_dependencies([tf.debugging.Assert(is_grey, [what])]):
        return tf.ensure_shape(mask[..., :1], [None, None, 1])


def _as_grey(encoded: tf.Tensor, header: tf.Tensor) -> tf.Tensor:
    """The same file with a header that calls the numbers greys."""
    checksum = tf.bitwise.bitwise_xor(header[_CHECKSUM:_HEADER_END], tf.constant(_CHANGE))
    checksum_text = tf.strings.reduce_join(
        tf.gather(tf.constant(_BYTES), tf.cast(checksum, tf.int32))
    )
    return tf.strings.join(
        [
            tf.strings.substr(encoded, 0, _COLOUR_TYPE),
            tf.constant(bytes([GREY])),
            tf.strings.substr(encoded, _COLOUR_TYPE + 1, _CHECKSUM - _COLOUR_TYPE - 1),
            checksum_text,
            tf.strings.substr(encoded, _HEADER_END, -1),
        ]
    )


def decode_segment_ids(encoded: tf.Tensor) -> tf.Tensor:
    """Decodes a PNG of COCO's panoptic format, int32 [height, width, 1].

    The number of a pixel's segment is red + 256 * green + 65536 * blue.
    """
    colours = tf.cast(tf.io.decode_png(encoded, channels=3), tf.int32)
    return tf.reduce_sum(colours * [1, 256, 65536], axis=-1, keepdims=True)
