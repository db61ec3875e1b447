"""What a launcher can be asked to do with an experiment."""

import enum
from collections.abc import Iterable

from hortus.hyperparams import did_you_mean


class Mode(str, enum.Enum):
    """Base of both kinds; a mode is its name."""

    description: str
    """For help texts."""
    evaluates: bool
    interval: str
    """The field of the trainer's config with the steps between two evaluations; empty for none."""

    def __new__(
        cls, name: str, description: str, evaluates: bool = True, interval: str = ""
    ) -> "Mode":
        mode = str.__new__(cls, name)
        mode._value_, mode.description = name, description
        mode.evaluates, mode.interval = evaluates, interval
        return mode

    @property
    def trains(self) -> bool:
        return isinstance(self, TrainMode)


class TrainMode(Mode):
    """Modes that train."""

    train = "train", "trains", False
    train_and_eval = (
        "train_and_eval",
        "trains, and evaluates every trainer.validation_interval steps",
        True,
        "validation_interval",
    )
    train_and_validate = (
        "train_and_validate",
        "the same as train_and_eval",
        True,
        "validation_interval",
    )
    train_and_post_eval = "train_and_post_eval", "trains, then evaluates once"
    continuous_train_and_eval = (
        "continuous_train_and_eval",
        "trains, and evaluates every checkpoint that it writes",
        True,
        "checkpoint_interval",
    )


class EvalMode(Mode):
    """Modes that leave the weights as they are."""

    eval = "eval", "evaluates the newest checkpoint"
    continuous_eval = (
        "continuous_eval",
        "evaluates each new checkpoint that another process writes",
    )


TRAIN_MODES = tuple(mode.value for mode in TrainMode)
EVAL_MODES = tuple(mode.value for mode in EvalMode)
MODES: dict[str, Mode] = {mode.value: mode for mode in (*TrainMode, *EvalMode)}
"""All modes by name."""


def get(name: str) -> Mode:
    """The mode of this name.

    Raises:
        ValueError: there is none.
    """
    if name not in MODES:
        raise ValueError(f"unknown mode {name!r}.{did_you_mean(name, MODES)}")
    return MODES[name]


def describe(modes: Iterable[Mode]) -> str:
    """A line of help about some of them."""
    return "; ".join(f"{mode.value}: {mode.description}" for mode in modes) + "."
