"""Widths of layers, rounded to what hardware likes."""


def make_divisible(
    value: float, divisor: int = 8, minimum: int | None = None, round_down_protect: bool = True
) -> int:
    """Rounds to the nearest multiple of `divisor`.

    Args:
        value: a number of filters, perhaps after scaling.
        divisor: what the result is a multiple of.
        minimum: least result; None for `divisor`.
        round_down_protect: go up instead, where rounding would take away more than a tenth.
    """
    least = divisor if minimum is None else minimum
    rounded = max(least, int(value + divisor / 2) // divisor * divisor)
    if round_down_protect and rounded < 0.9 * value:
        rounded += divisor
    return rounded


def round_filters(
    filters: int, multiplier: float | None, divisor: int = 8, minimum: int | None = None
) -> int:
    """Scales a number of filters by a width multiplier; None or 0 leaves it as it is."""
    if not multiplier:
        return int(filters)
    return make_divisible(filters * multiplier, divisor, minimum)
