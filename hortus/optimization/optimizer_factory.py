"""From settings to learning rates and optimizers, by tables that users can add to."""

import warnings
from typing import Any, Callable, Dict, Optional, Sequence

import keras
from keras.optimizers import Optimizer, schedules

from hortus import hyperparams, registry
from hortus.hyperparams import Config
from hortus.optimization import lr_schedule
from hortus.optimization.adafactor import Adafactor
from hortus.optimization.adamw import AdamWeightDecay
from hortus.optimization.configs.optimization_config import OptimizationConfig
from hortus.optimization.ema import ExponentialMovingAverage
from hortus.optimization.gradient_transformation import (
    ClipByValue,
    GradientTransformation,
    Transformer,
)
from hortus.optimization.lamb import LAMB
from hortus.optimization.lars import LARS
from hortus.optimization.lr_schedule import Rate
from hortus.optimization.sgd import SGD


class OptimizerFactory:
    """Builds what an `OptimizationConfig` describes.

        factory = OptimizerFactory(config.trainer.optimizer_config)
        optimizer = factory.build_optimizer(factory.build_learning_rate())

    Args:
        config: the settings; the types of optimizer and learning rate must be chosen.
    """

    def __init__(self, config: OptimizationConfig):
        self._config = config
        for section in ("optimizer", "learning_rate"):
            choice: Optional[hyperparams.OneOfConfig] = getattr(config, section)
            if choice is None or choice.type is None:
                known = choice.choices() if choice is not None else ()
                hint = f", to one of: {', '.join(known)}" if known else ""
                raise hyperparams.ConfigError(f"{section}.type must be set{hint}")

    def build_learning_rate(self) -> Rate:
        """The learning rate: a float, or a schedule over the global step with its warmup."""
        choice, warmup = self._config.learning_rate, self._config.warmup
        rate = _lookup(_SCHEDULES, "learning_rate", choice.type)(choice.get())
        if warmup is not None and warmup.type is not None:
            rate = _lookup(_WARMUPS, "warmup", warmup.type)(rate, warmup.get())
        return rate

    def build_optimizer(
        self,
        lr: Rate,
        gradient_aggregator: Optional[Transformer] = None,
        gradient_transformers: Optional[Sequence[Transformer]] = None,
        postprocessor: Optional[Callable[[Optimizer], Optimizer]] = None,
        use_legacy_optimizer: bool = False,
    ) -> Optimizer:
        """The optimizer, inside its moving average of weights if there is one.

        Args:
            lr: a constant or a schedule, usually from `build_learning_rate`.
            gradient_aggregator: a function from a list of (gradient, variable) to such a list,
                called before the transformers.
            gradient_transformers: functions like the aggregator, called in order, before clipping.
            postprocessor: called with the finished optimizer; what it returns is the result.
            use_legacy_optimizer: accepted and ignored, there is one kind of optimizer.
        """
        config, key = self._config.optimizer.get(), self._config.optimizer.type
        problems = list(config.check())
        if problems:
            raise hyperparams.ConfigError(f"optimizer.{key}: {'; '.join(problems)}")
        build = _lookup(_OPTIMIZERS, "optimizer", key)
        optimizer = build(lr if callable(lr) else float(lr), config)

        transformers = [gradient_aggregator] if gradient_aggregator else []
        transformers += gradient_transformers or []
        transformers += _value_clip_before_norm(config)
        if transformers:
            optimizer = GradientTransformation(optimizer, transformers)
        if self._config.ema is not None:
            optimizer = _averaged(optimizer, self._config.ema)
        return postprocessor(optimizer) if postprocessor else optimizer


def register_optimizer_cls(
    key: str, optimizer_cls: Optional[Callable[..., Optimizer]] = None
) -> Any:
    """Makes `key` an optimizer type.

    Args:
        key: the name of a field in your subclass of `OptimizerConfig`.
        optimizer_cls: called with `learning_rate` and all fields of that config by name, except
            clip settings that are not set. Without it, this is a decorator of the class.

    Raises:
        RegistryError: the key is taken.
    """

    def builder(cls: Callable[..., Optimizer]) -> Callable[[Rate, Config], Optimizer]:
        def build(rate: Rate, config: Config) -> Optimizer:
            fields = {k: v for k, v in config.as_dict().items() if k not in _CLIPS}
            fields["learning_rate"] = rate
            return cls(**fields, **_clips(config))

        return build

    return _register(_OPTIMIZERS, key, optimizer_cls, builder)


def register_schedule_cls(key: str, schedule_cls: Optional[Callable[..., Rate]] = None) -> Any:
    """Makes `key` a learning rate type.

    Args:
        key: the name of a field in your subclass of `LrConfig`.
        schedule_cls: called with all fields of that config by name, returns a
            `keras.optimizers.schedules.LearningRateSchedule` or a float. Without it, this is a
            decorator of the class.

    Raises:
        RegistryError: the key is taken.
    """
    return _register(
        _SCHEDULES, key, schedule_cls, lambda cls: lambda config: cls(**config.as_dict())
    )


def register_warmup_cls(key: str, warmup_cls: Optional[Callable[..., Rate]] = None) -> Any:
    """Makes `key` a warmup type.

    Args:
        key: the name of a field in your subclass of `WarmupConfig`.
        warmup_cls: called with the rate that follows, a float or a schedule, and all fields of that
            config by name; returns a schedule. Without it, this is a decorator of the class.

    Raises:
        RegistryError: the key is taken.
    """
    return _register(
        _WARMUPS, key, warmup_cls, lambda cls: lambda rate, config: cls(rate, **config.as_dict())
    )


def _register(
    table: registry.Registry, key: str, item: Any, builder: Callable[[Any], Callable]
) -> Any:
    """Registers the builder of an item, now, or by the decorator that is returned without one."""

    def decorator(item: Any) -> Any:
        build = builder(item)
        # For messages: where the item is, and not where its builder was made.
        build.__module__ = getattr(item, "__module__", build.__module__)
        build.__qualname__ = getattr(item, "__qualname__", build.__qualname__)
        build.__doc__ = getattr(item, "__doc__", None)
        registry.register(table, key)(build)
        return item

    return decorator if item is None else decorator(item)


# ---- optimizers -------------------------------------------------------------------------------

_CLIPS = ("clipnorm", "clipvalue", "global_clipnorm")


def _clips(config: Config) -> Dict[str, Any]:
    """The clip arguments for Keras, which takes one: a norm before the value."""
    clips = {name: config.get(name) for name in _CLIPS if config.get(name) is not None}
    return clips if len(clips) < 2 else {k: v for k, v in clips.items() if k != "clipvalue"}


def _value_clip_before_norm(config: Config) -> list:
    """The clip by value, where it comes beside one by norm."""
    value = config.get("clipvalue")
    return [ClipByValue(value)] if value is not None and "clipvalue" not in _clips(config) else []


def _arguments(config: Config, *names: str) -> Dict[str, Any]:
    """The named fields, the name and the clips of an optimizer's settings."""
    return {name: getattr(config, name) for name in ("name", *names)} | _clips(config)


def _sgd(rate: Rate, config: Any) -> Optimizer:
    if config.get("decay"):
        rate = lr_schedule.InverseTimeDecay(rate, config.decay)
    return SGD(rate, **_arguments(config, "momentum", "nesterov"))


def _adam(rate: Rate, config: Any) -> Optimizer:
    arguments = _arguments(config, "beta_1", "beta_2", "epsilon", "amsgrad")
    return keras.optimizers.Adam(rate, **arguments)


def _adamw(rate: Rate, config: Any) -> Optimizer:
    return AdamWeightDecay(
        rate,
        weight_decay=config.weight_decay_rate,
        include=config.include_in_weight_decay,
        exclude=config.exclude_from_weight_decay,
        **_arguments(config, "beta_1", "beta_2", "epsilon", "amsgrad", "gradient_clip_norm"),
    )


def _adamw_of_keras(rate: Rate, config: Any) -> Optimizer:
    arguments = _arguments(config, "beta_1", "beta_2", "epsilon", "amsgrad", "weight_decay")
    return keras.optimizers.AdamW(rate, **arguments)


def _lamb(rate: Rate, config: Any) -> Optimizer:
    return LAMB(
        rate,
        exclude_decay=config.exclude_from_weight_decay,
        exclude_adaptation=config.exclude_from_layer_adaptation,
        **_arguments(config, "beta_1", "beta_2", "epsilon", "weight_decay_rate"),
    )


def _lars(rate: Rate, config: Any) -> Optimizer:
    return LARS(
        rate,
        exclude_decay=config.exclude_from_weight_decay,
        exclude_adaptation=config.exclude_from_layer_adaptation,
        **_arguments(
            config, "momentum", "eeta", "nesterov", "classic_momentum", "weight_decay_rate"
        ),
    )


def _rmsprop(rate: Rate, config: Any) -> Optimizer:
    arguments = _arguments(config, "rho", "momentum", "epsilon", "centered")
    return keras.optimizers.RMSprop(rate, **arguments)


def _adagrad(rate: Rate, config: Any) -> Optimizer:
    arguments = _arguments(config, "initial_accumulator_value", "epsilon")
    return keras.optimizers.Adagrad(rate, **arguments)


def _adafactor(rate: Rate, config: Any) -> Optimizer:
    fields = {name: value for name, value in config.as_dict().items() if name not in _CLIPS}
    return Adafactor(rate, **fields, **_clips(config))


def _adafactor_of_keras(rate: Rate, config: Any) -> Optimizer:
    names = ("beta_2_decay", "epsilon_1", "epsilon_2", "clip_threshold", "relative_step")
    return keras.optimizers.Adafactor(rate, **_arguments(config, *names))


def _slide(rate: Rate, config: Any) -> Optimizer:
    raise hyperparams.ConfigError(
        "optimizer.type 'slide' can be loaded but not built: SLIDE has no public implementation. "
        "'lamb' and 'lars' adapt per layer too; your own needs a config field with another name "
        "and register_optimizer_cls."
    )


_OPTIMIZERS = registry.Registry("optimizer", "hortus.optimization")
"""Builders by type, called with the learning rate and the settings."""
_OPTIMIZERS |= {
    "sgd": _sgd,
    "sgd_experimental": _sgd,
    "adam": _adam,
    "adam_experimental": _adam,
    "adamw": _adamw,
    "adamw_experimental": _adamw_of_keras,
    "lamb": _lamb,
    "lars": _lars,
    "rmsprop": _rmsprop,
    "adagrad": _adagrad,
    "adafactor": _adafactor,
    "adafactor_keras": _adafactor_of_keras,
    "slide": _slide,
}


def _averaged(optimizer: Optimizer, config: Any) -> Optimizer:
    return ExponentialMovingAverage(
        optimizer,
        average_decay=config.average_decay,
        start_step=config.start_step,
        dynamic_decay=config.dynamic_decay,
        trainable_weights_only=config.trainable_weights_only,
        name=config.name,
    )


# ---- learning rates ---------------------------------------------------------------------------


def _filled(config: Config, section: str) -> Dict[str, Any]:
    """The fields of a schedule's settings, none of which may be missing."""
    fields = config.as_dict()
    missing = [name for name, value in fields.items() if value is None]
    if missing:
        raise hyperparams.ConfigError(f"{section}: {' and '.join(missing)} must be set")
    problems = list(config.check())
    if problems:
        raise hyperparams.ConfigError(f"{section}: {'; '.join(problems)}")
    return fields


def _of_keras(key: str, schedule_cls: Callable[..., Rate]) -> Callable[[Config], Rate]:
    """A builder of one of Keras' schedules, moved by the config's offset."""

    def build(config: Config) -> Rate:
        fields = _filled(config, f"learning_rate.{key}")
        offset = fields.pop("offset")
        schedule = schedule_cls(**fields)
        return lr_schedule.WithOffset(schedule, offset, fields["name"]) if offset else schedule

    return build


def _own(key: str, schedule_cls: Callable[..., Rate]) -> Callable[[Config], Rate]:
    """A builder of one of our schedules, which take their settings as they are."""
    return lambda config: schedule_cls(**_filled(config, f"learning_rate.{key}"))


def _constant(config: Any) -> Rate:
    return float(config.learning_rate)


def _stepwise(config: Any) -> Rate:
    if config.boundaries == [] and len(config.values or ()) == 1:
        return float(config.values[0])
    return _of_keras("stepwise", schedules.PiecewiseConstantDecay)(config)


def _exponential(config: Any) -> Rate:
    if config.staircase is None:
        config = config.replace(staircase=False)
    return _of_keras("exponential", schedules.ExponentialDecay)(config)


def _cosine_restarts(t_mul: float, **fields: Any) -> Rate:
    if t_mul == 1:
        return lr_schedule.CosineDecayEqualPeriods(**fields)
    return schedules.CosineDecayRestarts(t_mul=t_mul, **fields)


def _step_cosine(config: Any) -> Rate:
    key = "step_cosine_with_offset"
    schedule = _own(key, lr_schedule.StepCosineDecayWithOffset)(config)
    if config.boundaries[0]:
        warnings.warn(
            f"learning_rate.{key}.boundaries begin at {config.boundaries[0]}: the first piece "
            "counts its steps from 0, so the learning rate will jump at the second boundary",
            hyperparams.ConfigWarning,
            stacklevel=3,
        )
    return schedule


_SCHEDULES = registry.Registry("learning rate", "hortus.optimization")
"""Builders by type, called with the settings."""
_SCHEDULES |= {
    "constant": _constant,
    "stepwise": _stepwise,
    "exponential": _exponential,
    "polynomial": _of_keras("polynomial", schedules.PolynomialDecay),
    "cosine": _of_keras("cosine", schedules.CosineDecay),
    "cosine_restarts": _of_keras("cosine_restarts", _cosine_restarts),
    "power": _own("power", lr_schedule.PowerDecay),
    "power_linear": _own("power_linear", lr_schedule.PowerAndLinearDecay),
    "power_with_offset": _own("power_with_offset", lr_schedule.PowerDecayWithOffset),
    "step_cosine_with_offset": _step_cosine,
}

_WARMUPS = registry.Registry("warmup", "hortus.optimization")
"""Builders by type, called with the learning rate that follows and the settings."""
_WARMUPS |= {
    "linear": lambda rate, config: lr_schedule.LinearWarmup(
        rate, **_filled(config, "warmup.linear")
    ),
    "polynomial": lambda rate, config: lr_schedule.PolynomialWarmup(
        rate, **_filled(config, "warmup.polynomial")
    ),
}


def _lookup(table: registry.Registry, section: str, key: Any) -> Callable:
    try:
        return registry.lookup(table, key)
    except registry.RegistryError as error:
        raise hyperparams.ConfigError(f"{section}.type: {error}") from None
