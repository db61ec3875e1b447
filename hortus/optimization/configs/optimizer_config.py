"""Settings of the optimizers and of the moving average of weights."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Annotated, List, Optional, Union

from hortus import hyperparams
from hortus.hyperparams.bounds import Fraction, NonNegativeFloat, NonNegativeInt, PositiveFloat, le

Patterns = Optional[Union[str, List[str]]]
"""Regular expressions that are searched for in variable names such as `backbone/stem/kernel`."""

_COMPILED = "compilation is set by runtime.enable_xla"


@dataclasses.dataclass
class BaseOptimizerConfig(hyperparams.Config):
    """How gradients are clipped. By value comes first, then by one of the norms."""

    clipnorm: Optional[PositiveFloat] = None
    """Largest L2 norm of each variable's gradient."""
    clipvalue: Optional[PositiveFloat] = None
    """Largest absolute value of a gradient's elements."""
    global_clipnorm: Optional[PositiveFloat] = None
    """Largest L2 norm of all gradients together."""

    def check(self) -> Iterator[str]:
        """At most one of the norms is limited."""
        if self.clipnorm is not None and self.global_clipnorm is not None:
            yield (
                f"clipnorm ({self.clipnorm}) and global_clipnorm ({self.global_clipnorm}) are both "
                "set: gradients are clipped by one of them, set the other to null"
            )


@dataclasses.dataclass
class SGDConfig(BaseOptimizerConfig):
    """Stochastic gradient descent with momentum."""

    name: str = "SGD"
    decay: NonNegativeFloat = 0.0
    """Divides the learning rate by `1 + decay * step`, on top of its schedule."""
    nesterov: bool = False
    momentum: Fraction = 0.0


@dataclasses.dataclass
class SGDExperimentalConfig(BaseOptimizerConfig):
    """The same as sgd, under its second name."""

    name: str = "SGD"
    nesterov: bool = False
    momentum: Fraction = 0.0
    jit_compile: bool = hyperparams.inert(False, _COMPILED)


@dataclasses.dataclass
class RMSPropConfig(BaseOptimizerConfig):
    """RMSprop."""

    name: str = "RMSprop"
    rho: Fraction = 0.9
    """Decay of the mean square of the gradients."""
    momentum: Fraction = 0.0
    epsilon: NonNegativeFloat = 1e-7
    """Added to the mean square, under the root."""
    centered: bool = False
    """Whether the mean square is taken around the mean."""


@dataclasses.dataclass
class AdagradConfig(BaseOptimizerConfig):
    """Adagrad."""

    name: str = "Adagrad"
    initial_accumulator_value: NonNegativeFloat = 0.1
    epsilon: NonNegativeFloat = 1e-07


@dataclasses.dataclass
class AdamConfig(BaseOptimizerConfig):
    """Adam."""

    name: str = "Adam"
    beta_1: Fraction = 0.9
    beta_2: Fraction = 0.999
    epsilon: NonNegativeFloat = 1e-07
    amsgrad: bool = False


@dataclasses.dataclass
class AdamExperimentalConfig(BaseOptimizerConfig):
    """The same as adam, under its second name."""

    name: str = "Adam"
    beta_1: Fraction = 0.9
    beta_2: Fraction = 0.999
    epsilon: NonNegativeFloat = 1e-07
    amsgrad: bool = False
    jit_compile: bool = hyperparams.inert(False, _COMPILED)


@dataclasses.dataclass
class AdamWeightDecayConfig(BaseOptimizerConfig):
    """Adam with decoupled weight decay, by name."""

    name: str = "AdamWeightDecay"
    beta_1: Fraction = 0.9
    beta_2: Fraction = 0.999
    epsilon: NonNegativeFloat = 1e-07
    amsgrad: bool = False
    weight_decay_rate: NonNegativeFloat = 0.0
    """Share of a weight, times the learning rate, taken off at every step."""
    include_in_weight_decay: Patterns = None
    """Regular expressions of names that decay even if excluded below; alone it changes nothing."""
    exclude_from_weight_decay: Patterns = None
    """Regular expressions of names that do not decay; `.*` leaves those included above."""
    gradient_clip_norm: NonNegativeFloat = 1.0
    """Largest L2 norm of all gradients together, before any other clipping; 0 for no limit."""

    def check(self) -> Iterator[str]:
        """The expressions can be read."""
        yield from super().check()
        yield from _check_patterns(self, "include_in_weight_decay", "exclude_from_weight_decay")


@dataclasses.dataclass
class AdamWeightDecayExperimentalConfig(BaseOptimizerConfig):
    """Adam with decoupled weight decay for all variables."""

    global_clipnorm: Optional[PositiveFloat] = 1.0
    """Largest L2 norm of all gradients together; null for no limit."""
    name: str = "AdamWeightDecayExperimental"
    beta_1: Fraction = 0.9
    beta_2: Fraction = 0.999
    epsilon: NonNegativeFloat = 1e-07
    amsgrad: bool = False
    weight_decay: NonNegativeFloat = 0.0
    """Share of a weight, times the learning rate, taken off at every step."""
    jit_compile: bool = hyperparams.inert(False, _COMPILED)


@dataclasses.dataclass
class LAMBConfig(BaseOptimizerConfig):
    """LAMB (You et al. 2019)."""

    name: str = "LAMB"
    beta_1: Fraction = 0.9
    beta_2: Fraction = 0.999
    epsilon: NonNegativeFloat = 1e-6
    weight_decay_rate: NonNegativeFloat = 0.0
    """Share of a weight that is added to its update, inside the trust ratio."""
    exclude_from_weight_decay: Patterns = None
    """Regular expressions of names that do not decay."""
    exclude_from_layer_adaptation: Patterns = None
    """Regular expressions of names without trust ratio; null for those that do not decay."""

    def check(self) -> Iterator[str]:
        """The expressions can be read."""
        yield from super().check()
        yield from _check_patterns(
            self, "exclude_from_weight_decay", "exclude_from_layer_adaptation"
        )


@dataclasses.dataclass
class EMAConfig(BaseOptimizerConfig):
    """Exponential moving average of the weights, with which the model is evaluated."""

    clipnorm: Optional[PositiveFloat] = hyperparams.inert(None, "set it on the optimizer")
    clipvalue: Optional[PositiveFloat] = hyperparams.inert(None, "set it on the optimizer")
    global_clipnorm: Optional[PositiveFloat] = hyperparams.inert(None, "set it on the optimizer")
    name: str = "ExponentialMovingAverage"
    trainable_weights_only: bool = True
    """Whether the rest, such as the statistics of batch norm, stays out of the average."""
    average_decay: Fraction = 0.99
    """Share of the average that stays at each step."""
    start_step: NonNegativeInt = 0
    """Global step from which on weights are averaged; until then they are copied."""
    dynamic_decay: bool = True
    """Whether the decay is at most `(1 + t) / (10 + t)`, with t counted from start_step."""


@dataclasses.dataclass
class LARSConfig(BaseOptimizerConfig):
    """LARS (You et al. 2017)."""

    name: str = "LARS"
    momentum: Fraction = 0.9
    eeta: NonNegativeFloat = 0.001
    """Share of a layer's norm that a step of learning rate 1 may change."""
    weight_decay_rate: NonNegativeFloat = 0.0
    """Share of a weight that is added to its gradient."""
    nesterov: bool = False
    classic_momentum: bool = True
    """Whether the learning rate is inside the momentum."""
    exclude_from_weight_decay: Patterns = None
    """Regular expressions of names that do not decay."""
    exclude_from_layer_adaptation: Patterns = None
    """Regular expressions of names without trust ratio; null for those that do not decay."""

    def check(self) -> Iterator[str]:
        """The expressions can be read."""
        yield from super().check()
        yield from _check_patterns(
            self, "exclude_from_weight_decay", "exclude_from_layer_adaptation"
        )


@dataclasses.dataclass
class SLIDEConfig(BaseOptimizerConfig):
    """SLIDE, which has no public implementation: it can be loaded, not built."""

    name: str = "SLIDE"
    beta_1: Fraction = 0.9
    beta_2: Fraction = 0.999
    epsilon: NonNegativeFloat = 1e-6
    weight_decay_rate: NonNegativeFloat = 0.0
    weight_decay_type: str = "inner"
    exclude_from_weight_decay: Patterns = None
    exclude_from_layer_adaptation: Patterns = None
    include_in_sparse_layer_adaptation: Patterns = None
    sparse_layer_learning_rate: NonNegativeFloat = 0.1
    do_gradient_rescaling: bool = True
    norm_type: str = "layer"
    ratio_clip_norm: PositiveFloat = 1e5


@dataclasses.dataclass
class AdafactorConfig(BaseOptimizerConfig):
    """Adafactor (Shazeer & Stern 2018)."""

    name: str = "Adafactor"
    factored: bool = True
    """Whether large variables keep row and column means of their squared gradients only."""
    multiply_by_parameter_scale: bool = True
    """Whether a step is multiplied with the root mean square of the weights."""
    beta1: Optional[Fraction] = None
    """Decay of the momentum; null for none."""
    decay_rate: NonNegativeFloat = 0.8
    """The second moment of step t decays by `1 - t ** -decay_rate`."""
    step_offset: NonNegativeInt = 0
    """Global step at which t begins, for fine-tuning."""
    clipping_threshold: PositiveFloat = 1.0
    """Largest root mean square of an update."""
    min_dim_size_to_factor: NonNegativeInt = 128
    """Variables whose second largest dimension is smaller are not factored."""
    epsilon1: NonNegativeFloat = 1e-30
    """Added to squared gradients."""
    epsilon2: NonNegativeFloat = 1e-3
    """Smallest parameter scale."""
    weight_decay: Optional[NonNegativeFloat] = None
    """Share of a weight, times the learning rate, taken off at every step."""
    include_in_weight_decay: Patterns = None
    """Regular expressions of names that decay; null for all."""

    def check(self) -> Iterator[str]:
        """The expressions can be read."""
        yield from super().check()
        yield from _check_patterns(self, "include_in_weight_decay")


@dataclasses.dataclass
class AdafactorKerasConfig(BaseOptimizerConfig):
    """Keras' own Adafactor."""

    name: str = "Adafactor"
    learning_rate: NonNegativeFloat = hyperparams.inert(0.001, "set by the learning_rate section")
    beta_2_decay: Annotated[float, le(0)] = -0.8
    """The second moment of step t decays by `1 - t ** beta_2_decay`."""
    epsilon_1: NonNegativeFloat = 1e-30
    """Added to squared gradients."""
    epsilon_2: NonNegativeFloat = 1e-3
    """Smallest parameter scale."""
    clip_threshold: PositiveFloat = 1.0
    """Largest root mean square of an update."""
    relative_step: bool = True
    """Whether a constant learning rate is at most `1 / sqrt(step)`."""


def _check_patterns(config: hyperparams.Config, *fields: str) -> Iterator[str]:
    for field in fields:
        patterns = getattr(config, field) or ()
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                yield f"{field}: {pattern!r} is not a regular expression: {error}"
