"""The bounds of a number, as part of its type.

    steps: PositiveInt = 100
    rate: Annotated[float, gt(0), le(10)] = 0.1
    batches: Annotated[int, ge(1), also(-1)] = -1  # -1 has a meaning of its own
    sizes: list[PositiveInt] = dataclasses.field(default_factory=list)

A plain `int` has no bounds. A plain `float` is finite, unless its own default is not; an `AnyFloat`
may be infinite or not a number.
"""

import dataclasses
import math
from typing import Annotated, Optional, Union

Number = Union[int, float]

LARGEST_COUNT = 2**31 - 1
"""The largest whole number that every engine holds in 32 bits."""
LARGEST_LONG = 2**63 - 1
"""The same in 64 bits."""
LARGEST_SEED = 2**32 - 1
"""The largest seed that the random numbers of Keras and NumPy take."""


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What a number may be: within both ends, or one of the values in `also`."""

    low: Optional[Number] = None
    high: Optional[Number] = None
    without_low: bool = False
    """Whether `low` itself is outside."""
    without_high: bool = False
    also: tuple[Number, ...] = ()
    finite: bool = True

    def __and__(self, other: "Bounds") -> "Bounds":
        """Both of them; `also` widens whatever the ends say."""
        ours, theirs = self._ends(), other._ends()
        low, without_low = max(ours[0], theirs[0])
        high, with_high = min(ours[1], theirs[1])
        return Bounds(
            None if low == -math.inf else low,
            None if high == math.inf else high,
            without_low,
            not with_high,
            (*self.also, *other.also),
            self.finite and other.finite,
        )

    def _ends(self) -> tuple[tuple[Number, bool], tuple[Number, bool]]:
        """Both ends, so that the narrower one of two is the larger low, and the smaller high."""
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return (low, self.without_low), (high, not self.without_high)

    def hold(self, value: Number) -> bool:
        """Whether the number may be `value`."""
        if self.low is not None and not (
            value > self.low if self.without_low else value >= self.low
        ):
            return value in self.also
        if self.high is not None and not (
            value < self.high if self.without_high else value <= self.high
        ):
            return value in self.also
        return not self.finite or type(value) is int or math.isfinite(value)

    def words(self, exact: bool = False) -> str:
        """The bounds for a reader: `1 or more, or -1`; empty where there are none.

        Args:
            exact: Whether an upper end is named that is there for the sake of the machine only.
        """
        low, high = self.low, self.high
        if not exact and high in (LARGEST_COUNT, LARGEST_LONG, LARGEST_SEED):
            high = None
            low = None if low == -LARGEST_COUNT else low
        if low is None and high is None:
            text = ""
        elif high is None:
            text = f"above {low}" if self.without_low else f"{low} or more"
        elif low is None:
            text = f"below {high}" if self.without_high else f"{high} or less"
        elif self.without_low or self.without_high:
            first = f"above {low}" if self.without_low else f"{low} or more"
            text = f"{first} and {f'below {high}' if self.without_high else f'{high} at most'}"
        else:
            text = f"{low} to {high}"
        return ", or ".join(filter(None, (text, *map(str, self.also))))

    def schema(self) -> dict[str, object]:
        """The bounds as JSON schema has them."""
        names = {
            "exclusiveMinimum" if self.without_low else "minimum": self.low,
            "exclusiveMaximum" if self.without_high else "maximum": self.high,
        }
        ends: dict[str, object] = {key: end for key, end in names.items() if end is not None}
        return {"anyOf": [ends, {"enum": list(self.also)}]} if self.also and ends else ends


def ge(low: Number) -> Bounds:
    """`low` or more."""
    return Bounds(low=low)


def gt(low: Number) -> Bounds:
    """More than `low`."""
    return Bounds(low=low, without_low=True)


def le(high: Number) -> Bounds:
    """`high` or less."""
    return Bounds(high=high)


def lt(high: Number) -> Bounds:
    """Less than `high`."""
    return Bounds(high=high, without_high=True)


def also(*values: Number) -> Bounds:
    """These values too, whatever the ends say."""
    return Bounds(also=values)


UNBOUNDED = Bounds()
NOT_FINITE = Bounds(finite=False)
"""Infinity and NaN too."""

PositiveInt = Annotated[int, ge(1), le(LARGEST_COUNT)]
NonNegativeInt = Annotated[int, ge(0), le(LARGEST_COUNT)]
AnyInt = Annotated[int, ge(-LARGEST_COUNT), le(LARGEST_COUNT)]
"""A whole number of either sign."""
PositiveLong = Annotated[int, ge(1), le(LARGEST_LONG)]
"""A count that may need 64 bits, such as of bytes."""
Seed = Annotated[int, ge(0), le(LARGEST_SEED)]
PositiveFloat = Annotated[float, gt(0)]
NonNegativeFloat = Annotated[float, ge(0)]
Fraction = Annotated[float, ge(0), le(1)]
PositiveFraction = Annotated[float, gt(0), le(1)]
FiniteFloat = Annotated[float, UNBOUNDED]
"""A number of either sign: a plain `float` that says so."""
AnyFloat = Annotated[float, NOT_FINITE]
"""A number, infinity or NaN."""
