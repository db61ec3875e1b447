"""Resizing by bilinear interpolation, also where the sizes are known only when the code runs."""

from typing import Any

from keras import ops


def resize(images: Any, height: Any, width: Any) -> Any:
    """Bilinear interpolation between the centres of pixels; beyond the last one, its value.

    Args:
        images: (batch, any height, any width, channels).
        height: of the result, an int or an integer scalar.
        width: of the result, likewise.
    """
    if tuple(images.shape[1:3]) == (1, 1):
        batch, _, _, channels = ops.shape(images)
        return ops.broadcast_to(images, (batch, height, width, channels))
    if isinstance(height, int) and isinstance(width, int):
        if tuple(images.shape[1:3]) == (height, width):
            return images
        return ops.image.resize(images, (height, width), interpolation="bilinear")
    # Keras resizes to sizes that it knows only. To others, a product with a matrix per axis does.
    _, old_height, old_width, _ = ops.shape(images)
    x = ops.cast(images, "float32")
    x = ops.einsum("oh,bhwc->bowc", _weights(old_height, height), x)
    x = ops.einsum("ow,bhwc->bhoc", _weights(old_width, width), x)
    return ops.cast(x, images.dtype)


def resize_nearest(images: Any, height: Any, width: Any) -> Any:
    """The pixel nearest to each new pixel's centre, in the images' own type.

    Args:
        images: (batch, any height, any width, channels).
        height: of the result, an int or an integer scalar.
        width: of the result, likewise.
    """
    _, old_height, old_width, _ = ops.shape(images)
    rows, columns = _nearest(old_height, height), _nearest(old_width, width)
    return ops.take(ops.take(images, rows, axis=1), columns, axis=2)


def rescale_to_original(images: Any, image_info: Any, height: Any, width: Any) -> Any:
    """Undoes the resizing and padding that an input pipeline did, bilinearly.

    The part of each image that shows the original is resized to the original's size; what lies
    beyond that is the last row or column again.

    Args:
        images: (batch, height, width, channels) of the model's input size, such as logits.
        image_info: (batch, 4, 2): original size, size wished for, scale, offset of the crop; see
            `dataloaders.preprocess`.
        height: of the result, at least that of the highest original.
        width: of the result, likewise.
    """
    image_info = ops.cast(image_info, "float32")
    original, scale, offset = image_info[:, 0], image_info[:, 2], image_info[:, 3]
    shown = ops.round(original * scale)
    _, old_height, old_width, _ = ops.shape(images)
    rows, columns = (
        _part_weights(old, new, original[:, axis], shown[:, axis], offset[:, axis])
        for axis, (old, new) in enumerate(((old_height, height), (old_width, width)))
    )
    x = ops.cast(images, "float32")
    x = ops.einsum("boh,bhwc->bowc", rows, x)
    return ops.cast(ops.einsum("bow,bhwc->bhoc", columns, x), images.dtype)


def _weights(old: Any, new: Any) -> Any:
    """[new, old] share of each old pixel in each new one, for sizes `old` and `new`."""
    scale = ops.cast(old, "float32") / ops.cast(new, "float32")
    places = (ops.cast(ops.arange(new), "float32") + 0.5) * scale - 0.5
    places = ops.clip(places, 0.0, ops.cast(old, "float32") - 1.0)
    pixels = ops.cast(ops.arange(old), "float32")
    return ops.relu(1.0 - ops.abs(places[:, None] - pixels[None, :]))


def _part_weights(old: Any, new: Any, original: Any, shown: Any, offset: Any) -> Any:
    """[batch, new, old], where `shown` of the old pixels become `original` of the new ones."""
    pixels = ops.cast(ops.arange(new), "float32")
    places = (pixels[None] + 0.5) * (shown / original)[:, None] - 0.5 - offset[:, None]
    last = ops.minimum(shown - offset, ops.cast(old, "float32"))[:, None] - 1.0
    places = ops.clip(places, 0.0, last)
    pixels = ops.cast(ops.arange(old), "float32")
    return ops.relu(1.0 - ops.abs(places[..., None] - pixels))


def _nearest(old: Any, new: Any) -> Any:
    scale = ops.cast(old, "float32") / ops.cast(new, "float32")
    places = ops.floor((ops.cast(ops.arange(new), "float32") + 0.5) * scale)
    return ops.minimum(ops.cast(places, "int32"), ops.cast(old, "int32") - 1)
