"""Optimizers, learning rates and weight averages, from typed settings.

The settings are at hand at once; Keras is imported when something that computes is first touched.
"""

import importlib
import typing
from typing import Any

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
    from hortus.optimization.adafactor import Adafactor
    from hortus.optimization.adamw import AdamWeightDecay
    from hortus.optimization.ema import ExponentialMovingAverage
    from hortus.optimization.lamb import LAMB
    from hortus.optimization.lars import LARS
    from hortus.optimization.optimizer_factory import (
        OptimizerFactory,
        register_optimizer_cls,
        register_schedule_cls,
        register_warmup_cls,
    )

_MODULES = {
    "Adafactor": "adafactor",
    "AdamWeightDecay": "adamw",
    "ExponentialMovingAverage": "ema",
    "LAMB": "lamb",
    "LARS": "lars",
    "OptimizerFactory": "optimizer_factory",
    "register_optimizer_cls": "optimizer_factory",
    "register_schedule_cls": "optimizer_factory",
    "register_warmup_cls": "optimizer_factory",
}
"""Where the names are that need Keras."""

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


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    if name in ("ema", "lr_schedule", "optimizer_factory"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list:
    return sorted({*globals(), *_MODULES})
