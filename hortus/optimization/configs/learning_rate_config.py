"""Settings of the learning rate schedules and warmups."""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Annotated, List, Optional

from hortus import hyperparams
from hortus.hyperparams.bounds import (
    AnyInt,
    FiniteFloat,
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    ge,
)

REQUIRED = (
    "boundaries",
    "values",
    "initial_learning_rate",
    "decay_steps",
    "decay_rate",
    "first_decay_steps",
    "total_decay_steps",
    "warmup_steps",
)
"""Fields without a default that could be right: a schedule that is chosen has them set."""


@dataclasses.dataclass
class ConstantLrConfig(hyperparams.Config):
    """The same learning rate at every step."""

    name: str = "Constant"
    learning_rate: NonNegativeFloat = 0.1


@dataclasses.dataclass
class StepwiseLrConfig(hyperparams.Config):
    """A learning rate that changes at given steps."""

    name: str = "PiecewiseConstantDecay"
    boundaries: Optional[List[NonNegativeInt]] = None
    """Increasing steps; each is the last one with the value before it."""
    values: Optional[List[NonNegativeFloat]] = None
    """The learning rates: one more than there are boundaries."""
    offset: AnyInt = 0
    """Steps by which all boundaries are moved."""

    def check(self) -> Iterator[str]:
        """Boundaries and values belong together."""
        yield from _check_table(self.boundaries, self.values, more_values=1)


@dataclasses.dataclass
class ExponentialLrConfig(hyperparams.Config):
    """`initial_learning_rate * decay_rate ** (step / decay_steps)`."""

    name: str = "ExponentialDecay"
    initial_learning_rate: Optional[NonNegativeFloat] = None
    decay_steps: Optional[PositiveInt] = None
    """Steps after which the rate has been multiplied by `decay_rate` once."""
    decay_rate: Optional[NonNegativeFloat] = None
    staircase: Optional[bool] = None
    """Whether the exponent is rounded down, so that the rate falls in stairs."""
    offset: AnyInt = 0
    """Step at which the schedule begins."""


@dataclasses.dataclass
class PolynomialLrConfig(hyperparams.Config):
    """`(initial - end) * (1 - step / decay_steps) ** power + end`, then `end`."""

    name: str = "PolynomialDecay"
    initial_learning_rate: Optional[NonNegativeFloat] = None
    decay_steps: Optional[PositiveInt] = None
    """Steps until `end_learning_rate` is reached."""
    end_learning_rate: NonNegativeFloat = 0.0001
    power: FiniteFloat = 1.0
    """1 for a straight line."""
    cycle: bool = False
    """Whether the decay begins anew, over a longer stretch, each time the end is reached."""
    offset: AnyInt = 0
    """Step at which the schedule begins."""


@dataclasses.dataclass
class CosineLrConfig(hyperparams.Config):
    """Half a cosine from `initial_learning_rate` to `alpha` times it."""

    name: str = "CosineDecay"
    initial_learning_rate: Optional[NonNegativeFloat] = None
    decay_steps: Optional[PositiveInt] = None
    """Steps until the lowest rate is reached."""
    alpha: NonNegativeFloat = 0.0
    """The lowest rate, as a share of the initial one."""
    offset: AnyInt = 0
    """Step at which the schedule begins."""


@dataclasses.dataclass
class CosineRestartsLrConfig(hyperparams.Config):
    """Half cosines one after the other (Loshchilov & Hutter 2016, SGDR)."""

    name: str = "CosineDecayRestarts"
    initial_learning_rate: Optional[NonNegativeFloat] = None
    first_decay_steps: Optional[PositiveInt] = None
    """Length of the first period in steps."""
    t_mul: Annotated[float, ge(1)] = 2.0
    """How many times longer each period is than the one before."""
    m_mul: NonNegativeFloat = 1.0
    """What the rate at the start of a period is, as a share of the one before."""
    alpha: NonNegativeFloat = 0.0
    """The lowest rate, as a share of the initial one."""
    offset: AnyInt = 0
    """Step at which the schedule begins."""


@dataclasses.dataclass
class DirectPowerLrConfig(hyperparams.Config):
    """`initial_learning_rate * step ** power`."""

    name: str = "DirectPowerDecay"
    initial_learning_rate: Optional[NonNegativeFloat] = None
    power: FiniteFloat = -0.5


@dataclasses.dataclass
class PowerAndLinearDecayLrConfig(hyperparams.Config):
    """Power decay whose last part a linear decay takes to 0."""

    name: str = "PowerAndLinearDecay"
    initial_learning_rate: Optional[NonNegativeFloat] = None
    total_decay_steps: Optional[PositiveInt] = None
    """Steps until the rate is 0."""
    power: FiniteFloat = -0.5
    linear_decay_fraction: Fraction = 0.1
    """Share of the steps, at the end, over which the rate also falls linearly to 0."""
    offset: AnyInt = 0
    """Step at which the schedule begins."""


@dataclasses.dataclass
class PowerDecayWithOffsetLrConfig(hyperparams.Config):
    """A constant up to step `offset`, then power decay."""

    name: str = "PowerDecayWithOffset"
    initial_learning_rate: Optional[NonNegativeFloat] = None
    power: FiniteFloat = -0.5
    offset: AnyInt = 0
    """The last step with `pre_offset_learning_rate`."""
    pre_offset_learning_rate: NonNegativeFloat = 1.0e6


@dataclasses.dataclass
class StepCosineLrConfig(hyperparams.Config):
    """Half a cosine from each value to the next; the last value stays."""

    name: str = "StepCosineDecayWithOffset"
    boundaries: Optional[List[NonNegativeInt]] = None
    """Increasing steps at which each of the values is reached; the first should be 0."""
    values: Optional[List[NonNegativeFloat]] = None
    """The learning rates, as many as boundaries."""
    offset: AnyInt = 0
    """Step at which the schedule begins."""

    def check(self) -> Iterator[str]:
        """Boundaries and values belong together."""
        yield from _check_table(self.boundaries, self.values, more_values=0)


@dataclasses.dataclass
class LinearWarmupConfig(hyperparams.Config):
    """A straight line from `warmup_learning_rate` to what the schedule gives at its end."""

    name: str = "linear"
    warmup_learning_rate: NonNegativeFloat = 0
    """The rate at step 0."""
    warmup_steps: Optional[NonNegativeInt] = None
    """Length of the warmup; 0 for none."""


@dataclasses.dataclass
class PolynomialWarmupConfig(hyperparams.Config):
    """`(step / warmup_steps) ** power` of what the schedule gives at the end of the warmup."""

    name: str = "polynomial"
    power: FiniteFloat = 1
    """1 for a straight line, more for a slower start."""
    warmup_steps: Optional[NonNegativeInt] = None
    """Length of the warmup; 0 for none."""


def _check_table(
    boundaries: Optional[List[int]], values: Optional[List[float]], more_values: int
) -> Iterator[str]:
    if boundaries is None and values is None:
        return
    if boundaries is None or values is None:
        missing = "boundaries" if boundaries is None else "values"
        yield f"{missing} is missing: boundaries and values are set together"
        return
    if len(values) != len(boundaries) + more_values:
        wanted = "one value more than boundaries" if more_values else "as many values as boundaries"
        yield f"expected {wanted}, got {len(boundaries)} boundaries and {len(values)} values"
    if any(later <= earlier for earlier, later in itertools.pairwise(boundaries)):
        yield f"boundaries {boundaries} do not increase"
