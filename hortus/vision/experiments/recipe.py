"""What recipes are made of: schedules counted in epochs, and the experiment around a task."""

from collections.abc import Sequence
from typing import Any

from hortus import optimization
from hortus.core import config_definitions as cfg

RESTRICTIONS = (
    "task.train_data.is_training != None",
    "task.validation_data.is_training != None",
)
"""What must hold in every experiment."""

Part = dict[str, Any]
"""One choice with its settings, as a OneOfConfig takes it."""


def experiment(
    task: cfg.TaskConfig,
    trainer: cfg.TrainerConfig | None = None,
    restrictions: Sequence[str] = (),
    **runtime: Any,
) -> cfg.ExperimentConfig:
    """The experiment of a task; `runtime` are fields of RuntimeConfig."""
    return cfg.ExperimentConfig(
        task=task,
        trainer=trainer or cfg.TrainerConfig(),
        runtime=cfg.RuntimeConfig(**runtime),
        restrictions=[*RESTRICTIONS, *restrictions],
    )


def trainer(
    epoch: int,
    train_steps: int,
    validation_steps: int,
    optimizer: Part,
    learning_rate: Part,
    warmup: Part | None = None,
    ema: dict[str, Any] | None = None,
    **others: Any,
) -> cfg.TrainerConfig:
    """A trainer that reports, saves and evaluates once per epoch of `epoch` steps.

    `others` are further fields of TrainerConfig.
    """
    parts = {
        "optimizer": optimizer,
        "learning_rate": learning_rate,
        "warmup": warmup,
        "ema": ema,
    }
    return cfg.TrainerConfig(
        train_steps=train_steps,
        validation_steps=validation_steps,
        steps_per_loop=epoch,
        summary_interval=epoch,
        checkpoint_interval=epoch,
        validation_interval=epoch,
        optimizer_config=optimization.OptimizationConfig(
            {name: part for name, part in parts.items() if part is not None}
        ),
        **others,
    )


def choose(kind: str, **settings: Any) -> Part:
    """The choice `kind` of a OneOfConfig, with its settings."""
    return {"type": kind, kind: settings}


def sgd(**settings: Any) -> Part:
    """SGD with a momentum of 0.9."""
    return choose("sgd", momentum=0.9, **settings)


def step_down(peak: float, at: Sequence[int]) -> Part:
    """A learning rate that is `peak` at first, and divided by ten at each step of `at`."""
    values = [peak / 10**drop for drop in range(len(at) + 1)]
    return choose("stepwise", boundaries=list(at), values=values)


def cosine(peak: float, steps: int) -> Part:
    """A learning rate that falls from `peak` to 0 over `steps`, along a cosine."""
    return choose("cosine", initial_learning_rate=peak, decay_steps=steps)


def poly(peak: float, steps: int) -> Part:
    """DeepLab's learning rate: from `peak` to 0 over `steps`, as (1 - share done)^0.9."""
    return choose(
        "polynomial",
        initial_learning_rate=peak,
        decay_steps=steps,
        end_learning_rate=0.0,
        power=0.9,
    )


def warmup(steps: int, start: float = 0.0) -> Part:
    """A learning rate that rises in a line from `start` over the first `steps`."""
    return choose("linear", warmup_steps=steps, warmup_learning_rate=start)
