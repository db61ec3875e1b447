"""Optimizers, learning rates and weight averages, from typed settings.

The settings are at hand at once; Keras is imported when something that computes is first touched.
"""

import typing

from hortus import lazy
from hortus.optimization.configs.learning_rate_config import (
    ConstantLrConfig,
    CosineLrConfig,
    CosineRestartsLrConfig,
    DirectPowerLrConfig,
    ExponentialLrConfig,
    LinearWarmupConfig,
    PolynomialLrConfig,
    PolynomialWarmupConfig,
    PowerAndLinearDecayLrConfig,
    PowerDecayWithOffsetLrConfig,
    StepCosineLrConfig,
    StepwiseLrConfig,
)
from hortus.optimization.configs.optimization_config import (
    LrConfig,
    OptimizationConfig,
    OptimizerConfig,
    WarmupConfig,
)
from hortus.optimization.configs.optimizer_config import (
    AdafactorConfig,
    AdafactorKerasConfig,
    AdagradConfig,
    AdamConfig,
    AdamExperimentalConfig,
    AdamWeightDecayConfig,
    AdamWeightDecayExperimentalConfig,
    BaseOptimizerConfig,
    EMAConfig,
    LAMBConfig,
    LARSConfig,
    RMSPropConfig,
    SGDConfig,
    SGDExperimentalConfig,
    SLIDEConfig,
)

if typing.TYPE_CHECKING:
    from hortus.optimization import ema as ema
    from hortus.optimization import lr_schedule as lr_schedule
    from hortus.optimization import optimizer_factory as optimizer_factory
    from hortus.optimization.adafactor import Adafactor as Adafactor
    from hortus.optimization.adamw import AdamWeightDecay as AdamWeightDecay
    from hortus.optimization.ema import ExponentialMovingAverage as ExponentialMovingAverage
    from hortus.optimization.lamb import LAMB as LAMB
    from hortus.optimization.lars import LARS as LARS
    from hortus.optimization.optimizer_factory import OptimizerFactory as OptimizerFactory
    from hortus.optimization.optimizer_factory import (
        register_optimizer_cls as register_optimizer_cls,
    )
    from hortus.optimization.optimizer_factory import register_schedule_cls as register_schedule_cls
    from hortus.optimization.optimizer_factory import register_warmup_cls as register_warmup_cls

__all__ = [
    "LAMB",
    "LARS",
    "Adafactor",
    "AdafactorConfig",
    "AdafactorKerasConfig",
    "AdagradConfig",
    "AdamConfig",
    "AdamExperimentalConfig",
    "AdamWeightDecay",
    "AdamWeightDecayConfig",
    "AdamWeightDecayExperimentalConfig",
    "BaseOptimizerConfig",
    "ConstantLrConfig",
    "CosineLrConfig",
    "CosineRestartsLrConfig",
    "DirectPowerLrConfig",
    "EMAConfig",
    "ExponentialLrConfig",
    "ExponentialMovingAverage",
    "LAMBConfig",
    "LARSConfig",
    "LinearWarmupConfig",
    "LrConfig",
    "OptimizationConfig",
    "OptimizerConfig",
    "OptimizerFactory",
    "PolynomialLrConfig",
    "PolynomialWarmupConfig",
    "PowerAndLinearDecayLrConfig",
    "PowerDecayWithOffsetLrConfig",
    "RMSPropConfig",
    "SGDConfig",
    "SGDExperimentalConfig",
    "SLIDEConfig",
    "StepCosineLrConfig",
    "StepwiseLrConfig",
    "WarmupConfig",
    "register_optimizer_cls",
    "register_schedule_cls",
    "register_warmup_cls",
]

__getattr__, __dir__, _ = lazy.attach(__name__)
