"""Learning rates as pure functions of the global step, alike on TensorFlow and JAX.

Where Keras has the schedule, Keras computes it, and `WithOffset` shifts it. Steps are compared and
shifted as integers, before anything becomes a float: float32 counts exactly only up to 2**24.
All schedules take one step or an array of steps.
"""

import math
from typing import Any, List, Union

import keras
from keras import ops
from keras.optimizers.schedules import LearningRateSchedule as Schedule

Rate = Union[float, Schedule]
"""What an optimizer accepts: a constant, or a schedule."""

_DTYPE = "float32"


def rate_at(rate: Rate, step: Any) -> Any:
    """The learning rate at `step`, whether `rate` is a constant or a schedule."""
    return rate(step) if callable(rate) else ops.convert_to_tensor(rate, dtype=_DTYPE)


class _Schedule(Schedule):
    """Serialises itself by the names of its arguments, which are also its attributes."""

    _arguments: tuple = ()

    def get_config(self) -> dict:
        config = {name: getattr(self, name) for name in (*self._arguments, "name")}
        return {
            name: keras.saving.serialize_keras_object(value)
            if isinstance(value, Schedule)
            else value
            for name, value in config.items()
        }

    @classmethod
    def from_config(cls, config: dict) -> "_Schedule":
        values = {
            name: keras.saving.deserialize_keras_object(value) if isinstance(value, dict) else value
            for name, value in config.items()
        }
        return cls(**values)


@keras.saving.register_keras_serializable(package="Hortus")
class WithOffset(_Schedule):
    """`schedule` moved to the right: at `step` it gives `schedule(step - offset)`.

    Before `offset` that is the schedule continued to the left, usually hidden by a warmup.
    """

    _arguments = ("schedule", "offset")

    def __init__(self, schedule: Schedule, offset: int, name: str = "WithOffset"):
        super().__init__()
        self.schedule = schedule
        self.offset = offset
        self.name = name

    def __call__(self, step: Any) -> Any:
        return self.schedule(ops.convert_to_tensor(step) - self.offset)


@keras.saving.register_keras_serializable(package="Hortus")
class CosineDecayEqualPeriods(_Schedule):
    """Half cosines of equal length: `keras.optimizers.schedules.CosineDecayRestarts` of `t_mul` 1.

    Keras divides the step by the length and drops the whole part, which leaves few digits of the
    fraction after many periods; here the position in the period is a whole number.

    Args:
        initial_learning_rate: where the first period begins.
        first_decay_steps: length of each period.
        m_mul: where a period begins, as a share of where the one before did.
        alpha: the lowest rate, as a share of the initial one.
        name: name of the schedule.
    """

    _arguments = ("initial_learning_rate", "first_decay_steps", "m_mul", "alpha")

    def __init__(
        self,
        initial_learning_rate: float,
        first_decay_steps: int,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str = "CosineDecayRestarts",
    ):
        super().__init__()
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = first_decay_steps
        self.m_mul = m_mul
        self.alpha = alpha
        self.name = name

    def __call__(self, step: Any) -> Any:
        step = ops.convert_to_tensor(step)
        period = ops.floor_divide(step, self.first_decay_steps)
        done = ops.cast(step - period * self.first_decay_steps, _DTYPE) / self.first_decay_steps
        cosine = 0.5 * (1.0 + ops.cos(math.pi * done))
        peak = ops.power(ops.cast(self.m_mul, _DTYPE), ops.cast(period, _DTYPE))
        return self.initial_learning_rate * ((1.0 - self.alpha) * peak * cosine + self.alpha)


@keras.saving.register_keras_serializable(package="Hortus")
class PowerDecay(_Schedule):
    """`initial_learning_rate * step ** power`, with step 0 taken as step 1."""

    _arguments = ("initial_learning_rate", "power")

    def __init__(
        self, initial_learning_rate: float, power: float = -0.5, name: str = "DirectPowerDecay"
    ):
        super().__init__()
        self.initial_learning_rate = initial_learning_rate
        self.power = power
        self.name = name

    def __call__(self, step: Any) -> Any:
        return _power_decay(self, ops.convert_to_tensor(step))


@keras.saving.register_keras_serializable(package="Hortus")
class PowerAndLinearDecay(_Schedule):
    """Power decay that a linear decay takes to 0 over the last part of `total_decay_steps`.

    With `t = step - offset`: `initial_learning_rate * max(t, 1) ** power`, times a factor that
    falls from 1 to 0 over the last `linear_decay_fraction` (0 to 1) of the steps and stays 0.
    """

    _arguments = (
        "initial_learning_rate",
        "total_decay_steps",
        "power",
        "linear_decay_fraction",
        "offset",
    )

    def __init__(
        self,
        initial_learning_rate: float,
        total_decay_steps: int,
        power: float = -0.5,
        linear_decay_fraction: float = 0.1,
        offset: int = 0,
        name: str = "PowerAndLinearDecay",
    ):
        super().__init__()
        self.initial_learning_rate = initial_learning_rate
        self.total_decay_steps = total_decay_steps
        self.power = power
        self.linear_decay_fraction = linear_decay_fraction
        self.offset = offset
        self.name = name

    def __call__(self, step: Any) -> Any:
        step = ops.convert_to_tensor(step) - self.offset
        left = ops.cast(self.total_decay_steps - step, _DTYPE)
        # A fraction of 0 has no linear part: the rate drops to 0 at once after the last step.
        linear_steps = max(self.total_decay_steps * self.linear_decay_fraction, 1e-6)
        return _power_decay(self, step) * ops.clip(left / linear_steps, 0.0, 1.0)


@keras.saving.register_keras_serializable(package="Hortus")
class PowerDecayWithOffset(_Schedule):
    """`pre_offset_learning_rate` up to and including step `offset`, then power decay from 1 on."""

    _arguments = ("initial_learning_rate", "power", "offset", "pre_offset_learning_rate")

    def __init__(
        self,
        initial_learning_rate: float,
        power: float = -0.5,
        offset: int = 0,
        pre_offset_learning_rate: float = 1.0e6,
        name: str = "PowerDecayWithOffset",
    ):
        super().__init__()
        self.initial_learning_rate = initial_learning_rate
        self.power = power
        self.offset = offset
        self.pre_offset_learning_rate = pre_offset_learning_rate
        self.name = name

    def __call__(self, step: Any) -> Any:
        step = ops.convert_to_tensor(step) - self.offset
        before = ops.convert_to_tensor(self.pre_offset_learning_rate, dtype=_DTYPE)
        return ops.where(step <= 0, before, _power_decay(self, step))


@keras.saving.register_keras_serializable(package="Hortus")
class StepCosineDecayWithOffset(_Schedule):
    """Half a cosine from each value to the next; the last value holds from the last boundary on.

    With `t = step - offset`, the rate runs from `values[i]` at `boundaries[i]` to `values[i + 1]`
    at `boundaries[i + 1]`. The first piece counts its steps from 0, so the first boundary should
    be 0.

    Args:
        boundaries: at least one step, strictly increasing, where each value is reached.
        values: as many rates as boundaries.
        offset: step at which all of it begins.
        name: name of the schedule.
    """

    _arguments = ("boundaries", "values", "offset")

    def __init__(
        self,
        boundaries: List[int],
        values: List[float],
        offset: int = 0,
        name: str = "StepCosineDecayWithOffset",
    ):
        super().__init__()
        if not boundaries or len(boundaries) != len(values):
            raise ValueError(
                "step_cosine_with_offset needs at least one boundary and as many values: it "
                f"reaches values[i] at boundaries[i]. Received {len(boundaries)} boundaries "
                f"{boundaries} and {len(values)} values {values}."
            )
        self.boundaries = list(boundaries)
        self.values = list(values)
        self.offset = offset
        self.name = name

    def __call__(self, step: Any) -> Any:
        step = ops.convert_to_tensor(step) - self.offset
        rate = ops.full_like(ops.cast(step, _DTYPE), self.values[-1])
        # From the last piece to the first, so that the earliest piece that fits has the last word.
        for i in reversed(range(len(self.boundaries) - 1)):
            start, end = self.boundaries[i], self.boundaries[i + 1]
            done = ops.cast(step - (start if i else 0), _DTYPE) / (end - start)
            cosine = 0.5 * (1.0 + ops.cos(math.pi * done))
            piece = self.values[i + 1] + (self.values[i] - self.values[i + 1]) * cosine
            rate = ops.where(step < end, piece, rate)
        return rate


@keras.saving.register_keras_serializable(package="Hortus")
class InverseTimeDecay(_Schedule):
    """`rate / (1 + decay * step)`, on top of a constant or another schedule."""

    _arguments = ("rate", "decay")

    def __init__(self, rate: Rate, decay: float, name: str = "InverseTimeDecay"):
        super().__init__()
        self.rate = rate
        self.decay = decay
        self.name = name

    def __call__(self, step: Any) -> Any:
        step = ops.convert_to_tensor(step)
        return rate_at(self.rate, step) / (1.0 + self.decay * ops.cast(step, _DTYPE))


@keras.saving.register_keras_serializable(package="Hortus")
class LinearWarmup(_Schedule):
    """A straight line to what `after` gives at `warmup_steps`, then `after`.

    Args:
        after: the rate that follows, a constant or a schedule.
        warmup_steps: length of the line; 0 leaves `after` as it is.
        warmup_learning_rate: where the line begins, at step 0.
        name: name of the schedule.
    """

    _arguments = ("after", "warmup_steps", "warmup_learning_rate")

    def __init__(
        self,
        after: Rate,
        warmup_steps: int,
        warmup_learning_rate: float = 0.0,
        name: str = "linear",
    ):
        super().__init__()
        self.after = after
        self.warmup_steps = warmup_steps
        self.warmup_learning_rate = warmup_learning_rate
        self.name = name

    def __call__(self, step: Any) -> Any:
        step = ops.convert_to_tensor(step)
        after = rate_at(self.after, step)
        if not self.warmup_steps:
            return after
        target = rate_at(self.after, self.warmup_steps)
        done = ops.cast(step, _DTYPE) / self.warmup_steps
        line = self.warmup_learning_rate + done * (target - self.warmup_learning_rate)
        return ops.where(step < self.warmup_steps, line, after)


@keras.saving.register_keras_serializable(package="Hortus")
class PolynomialWarmup(_Schedule):
    """`(step / warmup_steps) ** power` of what `after` gives at `warmup_steps`, then `after`.

    Step 0 is taken as step 1, so that the first rate is not 0.

    Args:
        after: the rate that follows, a constant or a schedule.
        warmup_steps: length of the warmup; 0 leaves `after` as it is.
        power: 1 for a straight line, more for a slower start.
        name: name of the schedule.
    """

    _arguments = ("after", "warmup_steps", "power")

    def __init__(
        self, after: Rate, warmup_steps: int, power: float = 1.0, name: str = "polynomial"
    ):
        super().__init__()
        self.after = after
        self.warmup_steps = warmup_steps
        self.power = power
        self.name = name

    def __call__(self, step: Any) -> Any:
        step = ops.convert_to_tensor(step)
        after = rate_at(self.after, step)
        if not self.warmup_steps:
            return after
        target = rate_at(self.after, self.warmup_steps)
        done = ops.cast(ops.maximum(step, 1), _DTYPE) / self.warmup_steps
        return ops.where(step < self.warmup_steps, target * ops.power(done, self.power), after)


def _power_decay(schedule: Any, step: Any) -> Any:
    """`initial_learning_rate * max(step, 1) ** power` of a schedule with these two attributes."""
    base = ops.cast(ops.maximum(step, 1), _DTYPE)
    return schedule.initial_learning_rate * ops.power(base, schedule.power)
