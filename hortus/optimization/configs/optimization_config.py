"""Settings of all that moves the weights: optimizer, learning rate, warmup, average."""

import dataclasses
from collections.abc import Iterator
from typing import Optional

from hortus import hyperparams
from hortus.optimization.configs import learning_rate_config as lr
from hortus.optimization.configs import optimizer_config as opt


@dataclasses.dataclass
class OptimizerConfig(hyperparams.OneOfConfig):
    """Which optimizer, and its settings.

    An own optimizer joins by a subclass with one more field, and `register_optimizer_cls`.
    """

    type: Optional[str] = None
    """The name of the optimizer."""
    sgd: opt.SGDConfig = dataclasses.field(default_factory=opt.SGDConfig)
    sgd_experimental: opt.SGDExperimentalConfig = dataclasses.field(
        default_factory=opt.SGDExperimentalConfig
    )
    adam: opt.AdamConfig = dataclasses.field(default_factory=opt.AdamConfig)
    adam_experimental: opt.AdamExperimentalConfig = dataclasses.field(
        default_factory=opt.AdamExperimentalConfig
    )
    adamw: opt.AdamWeightDecayConfig = dataclasses.field(default_factory=opt.AdamWeightDecayConfig)
    adamw_experimental: opt.AdamWeightDecayExperimentalConfig = dataclasses.field(
        default_factory=opt.AdamWeightDecayExperimentalConfig
    )
    lamb: opt.LAMBConfig = dataclasses.field(default_factory=opt.LAMBConfig)
    rmsprop: opt.RMSPropConfig = dataclasses.field(default_factory=opt.RMSPropConfig)
    lars: opt.LARSConfig = dataclasses.field(default_factory=opt.LARSConfig)
    adagrad: opt.AdagradConfig = dataclasses.field(default_factory=opt.AdagradConfig)
    slide: opt.SLIDEConfig = dataclasses.field(default_factory=opt.SLIDEConfig)
    adafactor: opt.AdafactorConfig = dataclasses.field(default_factory=opt.AdafactorConfig)
    adafactor_keras: opt.AdafactorKerasConfig = dataclasses.field(
        default_factory=opt.AdafactorKerasConfig
    )


@dataclasses.dataclass
class LrConfig(hyperparams.OneOfConfig):
    """Which learning rate schedule, and its settings.

    An own schedule joins by a subclass with one more field, and `register_schedule_cls`.
    """

    type: Optional[str] = None
    """The name of the schedule."""
    constant: lr.ConstantLrConfig = dataclasses.field(default_factory=lr.ConstantLrConfig)
    stepwise: lr.StepwiseLrConfig = dataclasses.field(default_factory=lr.StepwiseLrConfig)
    exponential: lr.ExponentialLrConfig = dataclasses.field(default_factory=lr.ExponentialLrConfig)
    polynomial: lr.PolynomialLrConfig = dataclasses.field(default_factory=lr.PolynomialLrConfig)
    cosine: lr.CosineLrConfig = dataclasses.field(default_factory=lr.CosineLrConfig)
    cosine_restarts: lr.CosineRestartsLrConfig = dataclasses.field(
        default_factory=lr.CosineRestartsLrConfig
    )
    power: lr.DirectPowerLrConfig = dataclasses.field(default_factory=lr.DirectPowerLrConfig)
    power_linear: lr.PowerAndLinearDecayLrConfig = dataclasses.field(
        default_factory=lr.PowerAndLinearDecayLrConfig
    )
    power_with_offset: lr.PowerDecayWithOffsetLrConfig = dataclasses.field(
        default_factory=lr.PowerDecayWithOffsetLrConfig
    )
    step_cosine_with_offset: lr.StepCosineLrConfig = dataclasses.field(
        default_factory=lr.StepCosineLrConfig
    )


@dataclasses.dataclass
class WarmupConfig(hyperparams.OneOfConfig):
    """How the learning rate rises at the start; type null for no warmup."""

    type: Optional[str] = None
    """The name of the warmup."""
    linear: lr.LinearWarmupConfig = dataclasses.field(default_factory=lr.LinearWarmupConfig)
    polynomial: lr.PolynomialWarmupConfig = dataclasses.field(
        default_factory=lr.PolynomialWarmupConfig
    )


@dataclasses.dataclass
class OptimizationConfig(hyperparams.Config):
    """Optimizer, moving average of weights, learning rate and warmup."""

    optimizer: OptimizerConfig = dataclasses.field(default_factory=OptimizerConfig)
    ema: Optional[opt.EMAConfig] = None
    """Averages the weights for evaluation; null for no average."""
    learning_rate: LrConfig = dataclasses.field(default_factory=LrConfig)
    warmup: WarmupConfig = dataclasses.field(default_factory=WarmupConfig)

    def check_for_run(self) -> Iterator[str]:
        """Yields what has to be set before a run can train."""
        for section in ("optimizer", "learning_rate"):
            choice: hyperparams.OneOfConfig = getattr(self, section)
            if choice.type is None:
                yield f"{section}.type must be set, to one of: {', '.join(choice.choices())}"
        for section in ("optimizer", "learning_rate", "warmup"):
            choice = getattr(self, section)
            chosen = choice.get()
            if choice.type is not None and chosen is None:
                yield f"{section}.{choice.type} must not be null"
            for name in lr.REQUIRED if chosen is not None else ():
                if name in chosen and getattr(chosen, name) is None:
                    yield f"{section}.{choice.type}.{name} must be set"
