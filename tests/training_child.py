"""Trains the tiny task in every way that must give the same weights, in a process of its own.

    python tests/training_child.py results.npz --engine jax --devices 2

runs all cases on two devices; with `--hosts` and `--index` it is one of several hosts.
Not a test itself: training_parity_test.py starts it and compares what it writes.
"""

import argparse
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from hortus import engine

STEPS = 6

SGD = {
    "optimizer": {"type": "sgd", "sgd": {"momentum": 0.9}},
    "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.1}},
}
CLIPPED_ADAMW = {
    "optimizer": {"type": "adamw_experimental", "adamw_experimental": {"global_clipnorm": 0.05}},
    "learning_rate": {
        "type": "cosine",
        "cosine": {"initial_learning_rate": 0.01, "decay_steps": 10},
    },
}
# float16 keeps 11 bits, so gradients differ by about 5e-4 of their size when sums are taken in
# another order. With this rate all updates together stay near 1e-3, and so does 1e-5 hold. There is
# no batch norm, whose division by a small deviation would magnify the rounding.
FLOAT16 = {
    "optimizer": {"type": "sgd", "sgd": {"momentum": 0.9, "global_clipnorm": 0.5}},
    "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.002}},
}
PLAIN = {"model": {"batch_norm": False}}


@dataclasses.dataclass
class Case:
    """What differs from the tiny experiment."""

    optimizer: dict
    trainer: dict = dataclasses.field(default_factory=dict)
    task: dict = dataclasses.field(default_factory=dict)
    runtime: dict = dataclasses.field(default_factory=dict)
    where: str = "everywhere"
    """`everywhere`, on the `devices` of one host, or there on `tensorflow` only."""
    style: str = "portable"
    """How the step is written: `portable`, or with a `tape` and maybe `unscaled` gradients."""


def clipped(optimizer: dict, norm: float) -> dict:
    """Settings of SGD with the global norm clipped."""
    inner = {**optimizer["optimizer"]["sgd"], "global_clipnorm": norm}
    return {**optimizer, "optimizer": {"type": "sgd", "sgd": inner}}


IN_FLOAT16 = {"mixed_precision_dtype": "float16"}
CASES = {
    "sgd": Case(SGD),
    "adamw_ema": Case({**CLIPPED_ADAMW, "ema": {"average_decay": 0.9}}),
    "accumulation": Case(SGD, {"gradient_accumulation_steps": 2}),
    "float16": Case(FLOAT16, {}, PLAIN, IN_FLOAT16),
    "dropout": Case(SGD, {}, {"model": {"dropout": 0.5}}),
    "float16_overflow": Case(
        FLOAT16, {}, {**PLAIN, "bright_example": 12}, IN_FLOAT16, where="devices"
    ),
    "in_parts": Case(CLIPPED_ADAMW, {"gradient_accumulation_steps": 4}, PLAIN, where="devices"),
    "in_one": Case(CLIPPED_ADAMW, {}, PLAIN, where="devices"),
    "sgd_clipped": Case(clipped(SGD, 0.05), where="tensorflow"),
    "float16_fixed": Case(
        FLOAT16, {}, PLAIN, {**IN_FLOAT16, "loss_scale": 128.0}, where="tensorflow"
    ),
    "float16_accumulation": Case(
        FLOAT16, {"gradient_accumulation_steps": 2}, PLAIN, IN_FLOAT16, where="tensorflow"
    ),
}


def with_tape(name: str, style: str = "tape") -> Case:
    """A case whose step opens `tf.GradientTape` itself."""
    return dataclasses.replace(CASES[name], where="tensorflow", style=style)


CASES.update(
    {
        "tape_sgd": with_tape("sgd"),
        "tape_sgd_clipped": with_tape("sgd_clipped"),
        "tape_adamw_ema": with_tape("adamw_ema"),
        "tape_accumulation": with_tape("accumulation"),
        "tape_float16": with_tape("float16", "unscaled"),
        "tape_float16_overflow": with_tape("float16_overflow"),
        "tape_float16_fixed": with_tape("float16_fixed", "unscaled"),
        "tape_float16_accumulation": with_tape("float16_accumulation", "unscaled"),
    }
)


def make_task(params: Any, style: str) -> Any:
    """The tiny task, or one whose step opens `tf.GradientTape` itself."""
    from hortus.testing import tiny_task

    if style == "portable":
        return tiny_task.TinyTask(params)
    import tensorflow as tf

    class TapeTask(tiny_task.TinyTask):
        def train_step(self, inputs, model, optimizer, metrics=None):
            features, labels = inputs
            with tf.GradientTape() as tape:
                outputs = model(self.images(features), training=True)
                outputs = tf.nest.map_structure(lambda x: tf.cast(x, tf.float32), outputs)
                loss = self.build_losses(
                    model_outputs=outputs, labels=labels, aux_losses=model.losses
                )
                scaled_loss = loss / tf.distribute.get_strategy().num_replicas_in_sync
                if isinstance(optimizer, tf.keras.mixed_precision.LossScaleOptimizer):
                    scaled_loss = optimizer.get_scaled_loss(scaled_loss)
            tvars = model.trainable_variables
            grads = tape.gradient(scaled_loss, tvars)
            if style == "unscaled":
                grads = optimizer.get_unscaled_gradients(grads)
            optimizer.apply_gradients(list(zip(grads, tvars, strict=True)))
            logs = {self.loss: loss}
            for metric in metrics or ():
                metric.update_state(labels, outputs)
            return logs

    return TapeTask(params)


def make_trainer(strategy: Any, case: Case, task: Optional[dict] = None) -> Any:
    """A trainer for a case, with further changes of its task."""
    from hortus.core import base_trainer, exp_factory, performance
    from hortus.testing import tiny_task  # noqa: F401

    config = exp_factory.get_exp_config("tiny")
    config.override(
        {
            "trainer": {"optimizer_config": case.optimizer, **case.trainer},
            "task": {**case.task, **(task or {})},
            "runtime": case.runtime,
        }
    )
    performance.set_mixed_precision_policy(config.runtime.mixed_precision_dtype)
    with strategy.scope():
        made = make_task(config.task, case.style)
        model = made.build_model()
        optimizer = made.create_optimizer(config.trainer.optimizer_config, config.runtime)
        return base_trainer.Trainer(config, made, model, optimizer)


def train(strategy: Any, case: Case) -> dict[str, np.ndarray]:
    """Weights, averages, loss scale and logs after some steps."""
    import keras

    from hortus.core.base_trainer import average_of

    trainer = make_trainer(strategy, case)
    with strategy.scope():
        logs = [trainer.train(STEPS // 2), trainer.train(STEPS // 2)]
    found = {}
    for index, variable in enumerate(trainer.model.variables):
        if "seed_generator" not in variable.path:
            found[f"weight/{index}/{variable.name}"] = keras.ops.convert_to_numpy(variable)
    average = average_of(trainer.optimizer)
    for index, variable in enumerate(average.averages if average is not None else ()):
        found[f"average/{index}"] = keras.ops.convert_to_numpy(variable)
    if hasattr(trainer.optimizer, "dynamic_scale"):
        found["loss_scale"] = keras.ops.convert_to_numpy(trainer.optimizer.dynamic_scale)
    found["iterations"] = keras.ops.convert_to_numpy(trainer.optimizer.iterations)
    for name in logs[0]:
        found[f"log/{name}"] = np.array([part[name] for part in logs])
    return found


def evaluate(strategy: Any, num_examples: int) -> dict[str, np.ndarray]:
    """The logs of an evaluation in batches of 8."""
    data = {"validation_data": {"num_examples": num_examples}}
    trainer = make_trainer(strategy, CASES["sgd"], data)
    with strategy.scope():
        logs = trainer.evaluate(-1)
    return {f"log/{name}": np.array(value) for name, value in logs.items()}


def divergence_of_dropout(strategy: Any) -> dict[str, np.ndarray]:
    """What a dropout layer does to ones, for each example of a batch, twice."""
    import keras

    trainer = make_trainer(strategy, CASES["dropout"])
    layer = next(x for x in trainer.model.layers if isinstance(x, keras.layers.Dropout))

    def step(iterator: Any) -> Any:
        def run(batch: Any) -> Any:
            ones = keras.ops.ones_like(batch[0]["image"][:, :, :, 0])
            return {"mask": layer(keras.ops.reshape(ones, (-1, 64)), training=True)}

        return strategy.run(run, args=(next(iterator),))

    with strategy.scope():
        single = trainer.engine.single_step(step, trainer._state())
        batch = trainer.engine.next_batch(trainer.train_feed)
        return {f"mask/{index}": single(batch)["mask"] for index in range(2)}


def main() -> None:
    """Runs the cases and writes the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--engine", default="tensorflow")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--hosts", default=None)
    parser.add_argument("--index", type=int, default=-1)
    parser.add_argument("--cases", default="")
    options = parser.parse_args()
    engine.select(options.engine, options.devices)
    from hortus.core import distribute_utils

    if options.hosts:
        strategy = distribute_utils.get_distribution_strategy(
            "multi_worker_mirrored", worker_hosts=options.hosts, task_index=options.index
        )
    elif options.devices > 1:
        strategy = distribute_utils.get_distribution_strategy(
            "mirrored", virtual_cpu_devices=options.devices
        )
    else:
        strategy = distribute_utils.get_distribution_strategy("one_device")
    results: dict[str, np.ndarray] = {}
    places = ["everywhere"]
    if not options.hosts:
        places += ["devices", options.engine]
    runs: dict[str, Callable[[Any], dict[str, np.ndarray]]] = {
        name: functools.partial(train, case=case)
        for name, case in CASES.items()
        if case.where in places
    }
    # Uneven at the end; and a last batch that leaves some replica without an example.
    for count in (21, 17):
        runs[f"evaluation_{count}"] = functools.partial(evaluate, num_examples=count)
    runs["dropout_masks"] = divergence_of_dropout
    for name, run in runs.items():
        if not options.cases or name in options.cases.split(","):
            for key, value in run(strategy).items():
                results[f"{name}/{key}"] = value
    if options.index <= 0:
        np.savez(options.output, **results)


if __name__ == "__main__":
    main()
