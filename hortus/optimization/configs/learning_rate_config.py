"""Settings of the learning rate schedules and warmups."""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import List, Optional

from hortus import hyperparams


@dataclasses.dataclass
class ConstantLrConfig(hyperparams.Config):
    """The same learning rate at every step."""

    name: str = "Constant"
    learning_rate: float = 0.1


@dataclasses.dataclass
class StepwiseLrConfig(hyperparams.Config):
    """A learning rate that changes at given steps."""

    name: str = "PiecewiseConstantDecay"
    boundaries: Optional[List[int]] = None
    """Increasing steps; each is the last one with the value before it."""
    values: Optional[List[float]] = None
    """The learning rates: one more than there are boundaries."""
    offset: int = 0
    """Steps by which all boundaries are moved."""

    def check(self) -> Iterator[str]:
        """Boundaries and values belong together."""
        yield from _check_table(self.boundaries, self.values, more_values=1)


@dataclasses.dataclass
class ExponentialLrConfig(hyperparams.Config):
    """`initial_learning_rate * decay_rate ** (step / decay_steps)`."""

    name: str = "ExponentialDecay"
    initial_learning_rate: Optional[float] = None
    decay_steps: Optional[int] = None
    """Steps after which the rate has been multiplied by `decay_rate` once."""
    decay_rate: Optional[float] = None
    staircase: Optional[bool] = None
    """Whether the exponent is rounded down, so that the rate falls in stairs."""
    offset: int = 0
    """Step at which the schedule begins."""

    def check(self) -> Iterator[str]:
        """The length is positive."""
        yield from _check_positive(self, "decay_steps")


@dataclasses.dataclass
class PolynomialLrConfig(hyperparams.Config):
    """`(initial - end) * (1 - step / decay_steps) ** power + end`, then `end`."""

    name: str = "PolynomialDecay"
    initial_learning_rate: Optional[float] = None
    decay_steps: Optional[int] = None
    """Steps until `end_learning_rate` is reached."""
    end_learning_rate: float = 0.0001
    power: float = 1.0
    """1 for a straight line."""
    cycle: bool = False
    """Whether the decay begins anew, over a longer stretch, each time the end is reached."""
    offset: int = 0
    """Step at which the schedule begins."""

    def check(self) -> Iterator[str]:
        """The length is positive."""
        yield from _check_positive(self, "decay_steps")


@dataclasses.dataclass
class CosineLrConfig(hyperparams.Config):
    """Half a cosine from `initial_learning_rate` to `alpha` times it."""

    name: str = "CosineDecay"
    initial_learning_rate: Optional[float] = None
    decay_steps: Optional[int] = None
    """Steps until the lowest rate is reached."""
    alpha: float = 0.0
    """The lowest rate, as a share of the initial one."""
    offset: int = 0
    """Step at which the schedule begins."""

    def check(self) -> Iterator[str]:
        """The length is positive."""
        yield from _check_positive(self, "decay_steps")


@dataclasses.dataclass
class CosineRestartsLrConfig(hyperparams.Config):
    """Half cosines one after the other (Loshchilov & Hutter 2016, SGDR)."""

    name: str = "CosineDecayRestarts"
    initial_learning_rate: Optional[float] = None
    first_decay_steps: Optional[int] = None
    """Length of the first period in steps."""
    t_mul: float = 2.0
    """How many times longer each period is than the one before."""
    m_mul: float = 1.0
    """What the rate at the start of a period is, as a share of the one before."""
    alpha: float = 0.0
    """The lowest rate, as a share of the initial one."""
    offset: int = 0
    """Step at which the schedule begins."""

    def check(self) -> Iterator[str]:
        """Periods have a length and do not shrink to nothing."""
        yield from _check_positive(self, "first_decay_steps")
        if self.t_mul < 1:
            yield f"t_mul is {self.t_mul}: periods that become shorter end at a certain step"


@dataclasses.dataclass
class DirectPowerLrConfig(hyperparams.Config):
    """`initial_learning_rate * step ** power`."""

    name: str = "DirectPowerDecay"
    initial_learning_rate: Optional[float] = None
    power: float = -0.5


@dataclasses.dataclass
class PowerAndLinearDecayLrConfig(hyperparams.Config):
    """Power decay whose last part a linear decay takes to 0."""

    name: str = "PowerAndLinearDecay"
    initial_learning_rate: Optional[float] = None
    total_decay_steps: Optional[int] = None
    """Steps until the rate is 0."""
    power: float = -0.5
    linear_decay_fraction: float = 0.1
    """Share of the steps, at the end, over which the rate also falls linearly to 0."""
    offset: int = 0
    """Step at which the schedule begins."""

    def check(self) -> Iterator[str]:
        """The length is positive and the fraction one."""
        yield from _check_positive(self, "total_decay_steps")
        if not 0 <= self.linear_decay_fraction <= 1:
            yield f"linear_decay_fraction is {self.linear_decay_fraction}, not within 0 and 1"


@dataclasses.dataclass
class PowerDecayWithOffsetLrConfig(hyperparams.Config):
    """A constant up to step `offset`, then power decay."""

    name: str = "PowerDecayWithOffset"
    initial_learning_rate: Optional[float] = None
    power: float = -0.5
    offset: int = 0
    """The last step with `pre_offset_learning_rate`."""
    pre_offset_learning_rate: float = 1.0e6


@dataclasses.dataclass
class StepCosineLrConfig(hyperparams.Config):
    """Half a cosine from each value to the next; the last value stays."""

    name: str = "StepCosineDecayWithOffset"
    boundaries: Optional[List[int]] = None
    """Increasing steps at which each of the values is reached; the first should be 0."""
    values: Optional[List[float]] = None
    """The learning rates, as many as boundaries."""
    offset: int = 0
    """Step at which the schedule begins."""

    def check(self) -> Iterator[str]:
        """Boundaries and values belong together."""
        yield from _check_table(self.boundaries, self.values, more_values=0)


@dataclasses.dataclass
class LinearWarmupConfig(hyperparams.Config):
    """A straight line from `warmup_learning_rate` to what the schedule gives at its end."""

    name: str = "linear"
    warmup_learning_rate: float = 0
    """The rate at step 0."""
    warmup_steps: Optional[int] = None
    """Length of the warmup; 0 for none."""

    def check(self) -> Iterator[str]:
        """The length is not negative."""
        yield from _check_positive(self, "warmup_steps", or_zero=True)


@dataclasses.dataclass
class PolynomialWarmupConfig(hyperparams.Config):
    """`(step / warmup_steps) ** power` of what the schedule gives at the end of the warmup."""

    name: str = "polynomial"
    power: float = 1
    """1 for a straight line, more for a slower start."""
    warmup_steps: Optional[int] = None
    """Length of the warmup; 0 for none."""

    def check(self) -> Iterator[str]:
        """The length is not negative."""
        yield from _check_positive(self, "warmup_steps", or_zero=True)


def _check_positive(config: hyperparams.Config, field: str, or_zero: bool = False) -> Iterator[str]:
    value = getattr(config, field)
    if value is not None and (value < 0 or (value == 0 and not or_zero)):
        yield f"{field} is {value}, expected {'0 or more' if or_zero else 'more than 0'}"


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
