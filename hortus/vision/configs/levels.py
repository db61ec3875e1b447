"""Feature levels, by which backbones, decoders and heads name their maps."""

from typing import Annotated

from hortus.hyperparams.bounds import ge, le

Level = Annotated[int, ge(0), le(16)]
"""A feature level l: 1 pixel per 2^l of the input, so that level 16 is one pixel of 65,536."""
