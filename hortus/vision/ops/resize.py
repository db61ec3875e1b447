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

    Images are resized to the model's input size; the part of each that shows the original is then
    resized to the original's size.

    Args:
        images: (batch, any height, any width, channels), such as logits.
        image_info: (batch, 4, 2): original size, size of the model's input, scale from the one to
            the other, offset of the crop; see `dataloaders.preprocess`.
        height: of the result, at least that of the highest original.
        width: of the result, likewise.

    Returns:
        (batch, height, width, channels); beyond an original, its last row or column again.
    """
    image_info = ops.cast(image_info, "float32")
    _, old_height, old_width, _ = ops.shape(images)
    rows = _original_weights(old_height, height, image_info[:, :, 0])
    columns = _original_weights(old_width, width, image_info[:, :, 1])
    x = ops.cast(images, "float32")
    x = ops.einsum("boh,bhwc->bowc", rows, x)
    return ops.cast(ops.einsum("bow,bhwc->bhoc", columns, x), images.dtype)


def _weights(old: Any, new: Any) -> Any:
    """[new, old] share of each old pixel in each new one, for sizes `old` and `new`."""
    return _share(old, new, ops.cast(ops.arange(new), "float32"))


def _share(old: Any, new: Any, pixels: Any) -> Any:
    """[..., old] share of each old pixel in pixels of the new size."""
    size = ops.cast(old, "float32")
    places = (pixels + 0.5) * (size / ops.cast(new, "float32")) - 0.5
    places = ops.clip(places, 0.0, size - 1.0)
    old_pixels = ops.cast(ops.arange(old), "float32")
    return ops.relu(1.0 - ops.abs(ops.expand_dims(places, -1) - old_pixels))


def _original_weights(old: Any, new: Any, info: Any) -> Any:
    """[batch, new, old] along an axis, whose image info is [batch, 4].

    A new pixel lies between two pixels of the model's input, each of which is a mean of old ones.
    """
    original, wanted, scale, offset = (info[:, row, None] for row in range(4))
    shown = ops.round(original * scale)
    pixels = ops.cast(ops.arange(new), "float32")[None]
    places = (pixels + 0.5) * (shown / original) - 0.5 - offset
    last = ops.minimum(shown - offset, wanted) - 1.0
    places = ops.clip(places, 0.0, last)
    before = ops.floor(places)
    after = ops.minimum(before + 1.0, last)
    share = ops.expand_dims(places - before, -1)
    return (1.0 - share) * _share(old, wanted, before) + share * _share(old, wanted, after)


def _nearest(old: Any, new: Any) -> Any:
    scale = ops.cast(old, "float32") / ops.cast(new, "float32")
    places = ops.floor((ops.cast(ops.arange(new), "float32") + 0.5) * scale)
    return ops.minimum(ops.cast(places, "int32"), ops.cast(old, "int32") - 1)
