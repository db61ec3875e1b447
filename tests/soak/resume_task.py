"""A task to be interrupted: everything with a state of its own, and nothing that takes long."""

import dataclasses
import os
from typing import Any, Optional

import keras
import tensorflow as tf

from hortus.core import config_definitions as cfg
from hortus.core import exp_factory, task_factory
from hortus.testing import tiny_task
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.sources.base import Source
from hortus.vision.dataloaders.sources.record_files import FilePart, RecordFiles
from hortus.vision.dataloaders.sources.table import Table
from hortus.vision.modeling.layers.normalization.norm_act import BatchNormalization

EXAMPLES, BATCH = 48, 4
_BROKEN = (3, 4, 17, 30)


@dataclasses.dataclass
class Data(tiny_task.TinyData):
    """Numbered images, whose files are in `folder`."""

    global_batch_size: int = BATCH
    num_examples: int = EXAMPLES
    kind: str = "table"
    """How the data is read: each kind finds its position in another way.

    table: by the number of the row. records: by passing over those before it. mix: both in turns.
    broken: with records that are left out. copies: each example thrice. foreign: a pipeline of
    tf.data that is read again.
    """
    folder: str = ""
    repeated_augment: int = 1


@dataclasses.dataclass
class TaskConfig(tiny_task.TinyTaskConfig):
    train_data: Data = dataclasses.field(default_factory=lambda: Data(is_training=True))


@exp_factory.register_config_factory("interrupted")
def experiment() -> cfg.ExperimentConfig:
    """The tiny experiment with data from files."""
    params = tiny_task.tiny_experiment()
    params.task = TaskConfig()
    return params


@task_factory.register_task_cls(TaskConfig)
class InterruptedTask(tiny_task.TinyTask):
    """Classifies tiny images, and keeps a number that tells the order in which they came."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.order = keras.Variable(1, dtype="int32", trainable=False, name="order")

    def build_model(self) -> keras.Model:
        x = inputs = keras.Input((8, 8, 3))
        x = keras.layers.Flatten()(keras.layers.AveragePooling2D(4)(x))
        x = keras.layers.Dense(8, kernel_initializer=keras.initializers.GlorotUniform(seed=1))(x)
        x = BatchNormalization(momentum=0.9, name="norm")(x)
        x = keras.layers.Dropout(0.3, seed=7)(keras.layers.Activation("silu")(x))
        start = keras.initializers.GlorotUniform(seed=2)
        return keras.Model(inputs, keras.layers.Dense(10, kernel_initializer=start)(x))

    def train_step(
        self, inputs: Any, model: keras.Model, optimizer: Any, metrics: Any = None
    ) -> dict[str, Any]:
        index = keras.ops.cast(inputs[0]["index"], "int32")
        places = keras.ops.arange(1, BATCH + 1, dtype="int32")
        self.order.assign((self.order * 31 + keras.ops.sum(index * places)) % 65521)
        return super().train_step(inputs, model, optimizer, metrics)

    def build_inputs(self, params: Any, input_context: Optional[Any] = None) -> tf.data.Dataset:
        if not params.is_training or params.kind == "foreign":
            return super().build_inputs(params, input_context)
        images, labels = map(tf.constant, tiny_task.arrays(EXAMPLES))

        def parse(example: dict[str, tf.Tensor], seed: tf.Tensor) -> Any:
            index = example["index"]
            image = images[index] + tf.random.stateless_normal([8, 8, 3], seed, stddev=0.1)
            return {"image": image, "index": index}, labels[index]

        return InputReader(params, parser_fn=parse, sources=_sources(params)).read(input_context)


def _sources(params: Data) -> dict[str, Source]:
    table = Table({"index": tf.range(EXAMPLES, dtype=tf.int64)})
    files = [FilePart(os.path.join(params.folder, f"{params.kind}-{n}")) for n in range(3)]
    records = RecordFiles(
        files, lambda record: {"index": tf.strings.to_number(record, tf.int64)}, cycle_length=2
    )
    if params.kind == "mix":
        return {"a": table, "b": records}
    return {"": table if params.kind in ("table", "copies") else records}


def write_files(folder: str) -> None:
    """Writes the files of all kinds of data."""
    os.makedirs(folder, exist_ok=True)
    for kind in ("records", "mix", "broken"):
        texts = [b"%d" % number for number in range(EXAMPLES)]
        if kind == "broken":
            texts = [b"none" if n in _BROKEN else text for n, text in enumerate(texts)]
        for number in range(3):
            with tf.io.TFRecordWriter(os.path.join(folder, f"{kind}-{number}")) as writer:
                for text in texts[number::3]:
                    writer.write(text)


def settings(kind: str, folder: str, steps: int) -> dict[str, Any]:
    """What a run of such data changes of the experiment."""
    return {
        "runtime": {"deterministic": True, "seed": 3},
        "task": {
            "train_data": {
                "kind": kind,
                "folder": folder,
                "shuffle": True,
                "shuffle_buffer_size": 20,
                "skip_bad_records": kind == "broken",
                "repeated_augment": 3 if kind == "copies" else 1,
            }
        },
        "trainer": {
            "train_steps": steps,
            "steps_per_loop": 2,
            "summary_interval": 2,
            "checkpoint_interval": 2,
            "validation_interval": 8,
            "best_checkpoint_export_subdir": "best",
            "best_checkpoint_eval_metric": "validation_loss",
            "best_checkpoint_metric_comp": "lower",
            "optimizer_config": {
                "learning_rate": {
                    "type": "cosine",
                    "cosine": {"initial_learning_rate": 0.1, "decay_steps": 100},
                },
                "ema": {"average_decay": 0.9},
            },
        },
    }
