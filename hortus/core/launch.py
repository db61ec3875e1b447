"""What every launcher does before a run: settle what cannot be changed later."""

from typing import Any, Optional, TypeVar

from hortus import engine, hyperparams
from hortus.core import config_definitions as cfg

_Params = TypeVar("_Params", bound=cfg.ExperimentConfig)


def settle(params: _Params, mode: str) -> _Params:
    """The config as a run takes it: checked, and a copy that is locked.

    Args:
        params: the config.
        mode: one of `hortus.core.modes.MODES`.

    Raises:
        ConfigError: values contradict each other, or one has to be set.
    """
    params.validate_for_run(mode)
    settled = params.replace()
    settled.lock()
    return settled


def prepare(params: cfg.ExperimentConfig) -> Any:
    """Settles engine, precision, seeds and kernels as `params.runtime` asks for.

    Call it once, before anything loads Keras or a task is made; code that imports Keras is imported
    after it.

        params = train_utils.parse_configuration(FLAGS)
        strategy = launch.prepare(params)
        import my_project.tasks

    Returns:
        The strategy, for `train_lib.run_experiment` and for `with strategy.scope():`.

    Raises:
        ConfigError: the config is not valid.
        EngineError: Keras is loaded with another engine, or KERAS_BACKEND names another one.
    """
    params.validate()
    runtime = params.runtime
    engine.select(engine_of(params), runtime.virtual_cpu_devices)
    engine.load()
    # Only now: these load Keras, which must know the engine first.
    from hortus.core import distribute_utils, performance

    performance.set_seed_and_determinism(runtime)
    performance.set_mixed_precision_policy(runtime.mixed_precision_dtype)
    performance.set_fast_kernels(runtime.fast_kernels)
    return distribute_utils.get_distribution_strategy(
        distribution_strategy=runtime.distribution_strategy,
        num_gpus=runtime.num_gpus,
        all_reduce_alg=runtime.all_reduce_alg,
        num_packs=runtime.num_packs,
        tpu_address=runtime.tpu,
        worker_hosts=runtime.worker_hosts,
        task_index=runtime.task_index,
        virtual_cpu_devices=runtime.virtual_cpu_devices,
    )


def engine_of(params: cfg.ExperimentConfig) -> Optional[str]:
    """The engine that the config asks for; None where it does not, and the environment decides."""
    if params.origin("runtime.engine") == hyperparams.Origin("default"):
        return None
    return params.runtime.engine
