"""Time per step of a step that does almost nothing: what the loop around it costs.

    python benchmarks/loop.py [--peer PYTHON] [--rounds N] [--engine ENGINE]

The same tiny model, data, optimizer and loss metric in: hortus' Trainer; a loop written by hand for
the purpose, in one `tf.function` (or one jitted step, on JAX); and Keras' `model.fit`. `--peer` is
an interpreter that has tf-models-official: its trainer runs the same task. Then the time from a
command to the end of its first step, of ResNet-50, hortus against the peer.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import contest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_FEATURES, _BATCH, _LEARNING_RATE = 4, 8, 0.01
_STEPS_PER_LOOP = (1, 10, 100)
_STEPS = 100
"""Steps of one turn: short ones, so that a busy moment of the machine falls on all loops alike."""
_TURNS = 60


def arrays() -> tuple[Any, Any]:
    """Features [n, 4] and targets [n, 1]."""
    import numpy as np

    random = np.random.default_rng(0)
    return (
        random.standard_normal((64, _FEATURES)).astype("float32"),
        random.standard_normal((64, 1)).astype("float32"),
    )


def batches() -> Any:
    """Batches without end."""
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(arrays()).repeat()
    return dataset.batch(_BATCH, drop_remainder=True).prefetch(4)


def small_model() -> Any:
    """A dense layer."""
    import keras

    return keras.Sequential([keras.Input((_FEATURES,)), keras.layers.Dense(1)])


# ---- contestants: each a function of how many steps to take ----------------------------------


def hortus_loop(steps_per_loop: int) -> Callable[[], Any]:
    """The Trainer of hortus."""
    import keras
    from keras import ops

    from hortus import optimization
    from hortus.core import base_task, base_trainer, distribute_utils
    from hortus.core import config_definitions as cfg

    class LineTask(base_task.Task):
        def build_model(self) -> keras.Model:
            return small_model()

        def build_inputs(self, params: Any, input_context: Any = None) -> Any:
            return batches()

        def build_losses(self, labels: Any, model_outputs: Any, aux_losses: Any = None) -> Any:
            return ops.mean(ops.square(labels - model_outputs))

    config = cfg.ExperimentConfig(task=cfg.TaskConfig(train_data=cfg.DataConfig()))
    strategy = distribute_utils.get_distribution_strategy("one_device")
    with strategy.scope():
        task = LineTask(config.task)
        optimizer = task.create_optimizer(
            optimization.OptimizationConfig(
                {
                    "optimizer": {"type": "sgd"},
                    "learning_rate": {
                        "type": "constant",
                        "constant": {"learning_rate": _LEARNING_RATE},
                    },
                }
            )
        )
        trainer = base_trainer.Trainer(
            config, task, task.build_model(), optimizer, train=True, evaluate=False
        )
    return lambda: trainer.train(steps_per_loop)


def tensorflow_loop(steps_per_loop: int) -> Callable[[], Any]:
    """A loop in one tf.function, with a loss metric that is read and reset after it."""
    import keras
    import tensorflow as tf

    model, optimizer = small_model(), keras.optimizers.SGD(_LEARNING_RATE)
    optimizer.build(model.trainable_variables)
    loss_metric = keras.metrics.Mean()
    iterator = iter(batches())

    @tf.function
    def loop(steps: tf.Tensor) -> None:
        for _ in tf.range(steps):
            features, targets = next(iterator)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(targets - model(features, training=True)))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            loss_metric.update_state(loss)

    def run() -> Any:
        loss_metric.reset_state()
        loop(tf.constant(steps_per_loop))
        return {
            "loss": float(loss_metric.result()),
            "learning_rate": float(optimizer.learning_rate),
        }

    return run


def jax_loop(steps_per_loop: int) -> Callable[[], Any]:
    """A jitted step on stateless Keras, and a Python loop around it."""
    import jax
    import keras

    model, optimizer = small_model(), keras.optimizers.SGD(_LEARNING_RATE)
    optimizer.build(model.trainable_variables)
    iterator = batches().as_numpy_iterator()

    def loss_of(weights: Any, others: Any, features: Any, targets: Any) -> Any:
        outputs, others = model.stateless_call(weights, others, features, training=True)
        return ((targets - outputs) ** 2).mean(), others

    gradient = jax.value_and_grad(loss_of, has_aux=True)

    def step(state: Any, features: Any, targets: Any) -> Any:
        weights, others, slots, total = state
        (loss, others), gradients = gradient(weights, others, features, targets)
        weights, slots = optimizer.stateless_apply(slots, gradients, weights)
        return weights, others, slots, total + loss

    compiled = jax.jit(step, donate_argnums=0)
    values = [
        [variable.value for variable in group]
        for group in (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    ]
    state = (*values, jax.numpy.zeros(()))

    def run() -> Any:
        nonlocal state
        state = (*state[:3], jax.numpy.zeros(()))
        for _ in range(steps_per_loop):
            state = compiled(state, *next(iterator))
        return float(state[3]) / steps_per_loop

    return run


def fit_loop(steps_per_loop: int) -> Callable[[], Any]:
    """Keras' own loop, compiled for as many steps."""
    import keras

    model = small_model()
    model.compile(
        keras.optimizers.SGD(_LEARNING_RATE), loss="mse", steps_per_execution=steps_per_loop
    )
    data = batches()
    # All steps of a turn in one call: the first of a call costs more.
    return lambda: model.fit(data, epochs=1, steps_per_epoch=_STEPS, verbose=0)


def peer_loop(steps_per_loop: int) -> Callable[[], Any]:
    """The trainer of tf-models-official, with the same step written as its users write it."""
    import tensorflow as tf
    import tf_keras
    from official.core import base_task, base_trainer
    from official.core import config_definitions as cfg
    from official.modeling import optimization

    class LineTask(base_task.Task):
        def build_model(self) -> Any:
            return tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(_FEATURES,))])

        def build_inputs(self, params: Any, input_context: Any = None) -> Any:
            return batches()

        def build_losses(self, labels: Any, model_outputs: Any, aux_losses: Any = None) -> Any:
            return tf.reduce_mean(tf.square(labels - model_outputs))

    params = {
        "optimizer": {"type": "sgd"},
        "learning_rate": {"type": "constant", "constant": {"learning_rate": _LEARNING_RATE}},
    }
    config = cfg.ExperimentConfig(
        task=cfg.TaskConfig(train_data=cfg.DataConfig()),
        trainer=cfg.TrainerConfig(optimizer_config=optimization.OptimizationConfig(params)),
    )
    task = LineTask(config.task)
    trainer = base_trainer.Trainer(
        config,
        task,
        task.build_model(),
        task.create_optimizer(config.trainer.optimizer_config),
        train=True,
        evaluate=False,
    )
    return lambda: trainer.train(tf.constant(steps_per_loop))


_LOOPS = {
    "hortus": hortus_loop,
    "tf.function by hand": tensorflow_loop,
    "jitted step by hand": jax_loop,
    "model.fit": fit_loop,
    "tf-models-official": peer_loop,
}


def measure(job: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Seconds per step of loops that take turns, by loop and steps per loop."""
    seconds: dict[str, dict[str, float]] = {loop: {} for loop in job["loops"]}
    for steps_per_loop in _STEPS_PER_LOOP:
        runs = {loop: _LOOPS[loop](steps_per_loop) for loop in job["loops"]}
        times: dict[str, list[float]] = {loop: [] for loop in runs}
        for turn in range(_TURNS + 1):
            for loop, run in runs.items():
                calls = 1 if loop == "model.fit" else _STEPS // steps_per_loop
                begin = time.perf_counter()
                for _ in range(calls):
                    run()
                if turn:  # the first one is for tracing and warming up
                    times[loop].append((time.perf_counter() - begin) / _STEPS)
        for loop, values in times.items():
            seconds[loop][str(steps_per_loop)] = statistics.median(values)
    return seconds


# ---- start-up -------------------------------------------------------------------------------


def write_images(folder: pathlib.Path) -> str:
    """A file of 64 small images; returns its path."""
    import numpy as np
    import tensorflow as tf

    path = str(folder / "images.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(64):
            pixels = np.full([160, 160, 3], number * 3, np.uint8)
            encoded = tf.io.encode_jpeg(pixels).numpy()
            features = {
                "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded])),
                "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[1])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    return path


def start_up(python: str, module: str, path: str, folder: pathlib.Path) -> float:
    """Seconds that a driver takes for one step of ResNet-50, from the command to its end."""
    override = {
        "runtime": {"distribution_strategy": "one_device", "enable_xla": False},
        "task": {
            "model": {"input_size": [128, 128, 3]},
            "train_data": {
                "input_path": path,
                "global_batch_size": 8,
                "shuffle_buffer_size": 64,
                "file_type": "tfrecord",
            },
        },
        "trainer": {"train_steps": 1, "steps_per_loop": 1, "summary_interval": 1},
    }
    command = [
        *(python, "-m", module, "--experiment=resnet_imagenet", "--mode=train"),
        f"--model_dir={folder}",
        f"--params_override={json.dumps(override)}",
    ]
    begin = time.perf_counter()
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        check=False,
    )
    if result.returncode:
        sys.exit(f"{module} failed:\n{result.stderr[-3000:]}")
    return time.perf_counter() - begin


def compare_start_up(peer: str, rounds: int) -> None:
    """Prints how long the two drivers take."""
    drivers = {
        "hortus": (sys.executable, "hortus.vision.train"),
        "tf-models-official": (peer, "official.vision.train"),
    }
    times: dict[str, list[dict[str, float]]] = {name: [] for name in drivers}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = write_images(folder)
        for number in range(rounds):
            for driver, (python, module) in drivers.items():
                run = folder / f"{driver}-{number}"
                times[driver].append({"start": start_up(python, module, path, run)})
    contest.show(
        "ResNet-50, 128 px, batch 8: from the command through one step and its checkpoint",
        {driver: contest.medians(rounds) for driver, rounds in times.items()},
        base="hortus",
        units={"start": ("s", 1.0)},
    )


def main() -> None:
    """Prints the tables."""
    by_hand = {"tensorflow": "tf.function by hand", "jax": "jitted step by hand"}
    parser = contest.parser(__doc__)
    parser.add_argument("--engine", choices=list(by_hand), help="one of the engines alone")
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(arguments.job)))
        return
    for engine, base in by_hand.items():
        if arguments.engine not in (None, engine):
            continue
        # Loops of one engine share a process: between two, times differ more than between loops.
        job = {"loops": [base, "hortus", "model.fit"]}
        rounds = [contest.run(__file__, job, KERAS_BACKEND=engine) for _ in range(arguments.rounds)]
        rows = {loop: contest.medians([each[loop] for each in rounds]) for loop in rounds[0]}
        if arguments.peer and engine == "tensorflow":
            rows |= contest.run(__file__, {"loops": ["tf-models-official"]}, arguments.peer)
        contest.show(
            f"Microseconds per step on {engine}, by steps per loop, medians of {arguments.rounds} "
            f"times {_TURNS} turns",
            rows,
            base=base,
            units={str(steps): (f"{steps} per loop", 1e6) for steps in _STEPS_PER_LOOP},
        )
    if arguments.peer:
        compare_start_up(arguments.peer, arguments.rounds)


if __name__ == "__main__":
    main()
