"""Kinds of numbers that several vision configs have."""

from typing import Annotated

from hortus.hyperparams.bounds import ge, le, lt

Level = Annotated[int, ge(0), le(16)]
"""A feature level l: 1 pixel per 2^l of the input, so that level 16 is one pixel of 65,536."""
Layers = Annotated[int, ge(0), le(1000)]
"""Layers, or blocks of them, one after the other."""
Blocks = Annotated[Layers, ge(1)]
"""The same, at least one."""
Width = Annotated[int, ge(1), le(2**16)]
"""Filters of a convolution, or units of a dense layer."""
Pixels = Annotated[int, ge(1), le(2**16)]
"""The side of an image."""
Boxes = Annotated[int, ge(1), le(1_000_000)]
"""Boxes of one image."""
Classes = Annotated[int, ge(0), le(1_000_000)]
"""The number of classes; 0 until it is set."""
WidthFactor = Annotated[float, ge(1 / 64), le(64)]
"""A factor on the number of filters of all layers; the first ones have 16 to 64."""
DropRate = Annotated[float, ge(0), lt(1)]
"""A share that is dropped in training; to drop all would leave nothing to learn from."""
