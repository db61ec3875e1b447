"""A learning problem that trains in a second, to test everything around a task with."""

import dataclasses
from typing import Any, Optional

import keras
import numpy as np
import tensorflow as tf

from hortus import hyperparams, optimization
from hortus.core import base_task, exp_factory, task_factory
from hortus.core import config_definitions as cfg
from hortus.vision.modeling.layers.normalization.norm_act import BatchNormalization


@dataclasses.dataclass
class TinyModel(hyperparams.Config):
    """A few convolutions."""

    batch_norm: bool = True
    dropout: float = 0.0
    l2_weight_decay: float = 1e-4


@dataclasses.dataclass
class TinyData(cfg.DataConfig):
    """Random images whose label can be learnt."""

    global_batch_size: int = 16
    num_examples: int = 64
    shuffle: bool = False


@dataclasses.dataclass
class TinyTaskConfig(cfg.TaskConfig):
    """What `TinyTask` needs to know."""

    model: TinyModel = dataclasses.field(default_factory=TinyModel)
    train_data: TinyData = dataclasses.field(default_factory=lambda: TinyData(is_training=True))
    validation_data: TinyData = dataclasses.field(
        default_factory=lambda: TinyData(
            is_training=False, num_examples=21, global_batch_size=8, drop_remainder=False
        )
    )
    explode_at: int = -1
    """The example whose loss is not finite, for tests of recovery; -1 for none."""
    bright_example: int = -1
    """An example so bright that its gradients overflow in float16; -1 for none."""


@exp_factory.register_config_factory("tiny")
def tiny_experiment() -> cfg.ExperimentConfig:
    """Trains a tiny model on generated data."""
    return cfg.ExperimentConfig(
        runtime=cfg.RuntimeConfig(distribution_strategy="one_device", seed=1),
        task=TinyTaskConfig(),
        trainer=cfg.TrainerConfig(
            train_steps=12,
            steps_per_loop=4,
            summary_interval=4,
            checkpoint_interval=4,
            validation_interval=4,
            sanity_validation_steps=0,
            optimizer_config=optimization.OptimizationConfig(
                {
                    "optimizer": {"type": "sgd", "sgd": {"momentum": 0.9}},
                    "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.1}},
                }
            ),
        ),
    )


def arrays(num_examples: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, 8, 8, 3] and labels [n] in 0..9."""
    generator = np.random.RandomState(seed)
    images = generator.normal(size=(num_examples, 8, 8, 3)).astype("float32")
    return images, generator.randint(0, 10, size=num_examples).astype("int32")


@task_factory.register_task_cls(TinyTaskConfig)
class TinyTask(base_task.Task):
    """Classifies tiny images. Its initial weights are the same on both engines."""

    def build_model(self) -> keras.Model:
        config = self.task_config.model
        regularizer = keras.regularizers.L2(config.l2_weight_decay)
        x = inputs = keras.Input((8, 8, 3))
        for index, filters in enumerate((8, 16)):
            x = keras.layers.Conv2D(
                filters, 3, padding="same", use_bias=False, kernel_regularizer=regularizer
            )(x)
            if config.batch_norm:
                x = BatchNormalization(momentum=0.9, synchronized=True, name=f"norm_{index}")(x)
            # Smooth: at the kink of a ReLU the last bit of an activation decides on a gradient.
            x = keras.layers.Activation("silu")(x)
        x = keras.layers.GlobalAveragePooling2D()(x)
        if config.dropout:
            x = keras.layers.Dropout(config.dropout, seed=7)(x)
        x = keras.layers.Dense(10, dtype="float32", kernel_regularizer=regularizer)(x)
        model = keras.Model(inputs, x)
        generator = np.random.RandomState(0)
        for variable in model.trainable_variables:
            if variable.path.endswith("kernel"):
                variable.assign(generator.normal(0, 0.2, variable.shape).astype("float32"))
        return model

    def build_inputs(
        self, params: TinyData, input_context: Optional[Any] = None
    ) -> tf.data.Dataset:
        images, labels = arrays(params.num_examples)
        index = np.arange(params.num_examples, dtype="int32")
        dataset = tf.data.Dataset.from_tensor_slices(({"image": images, "index": index}, labels))
        size = params.global_batch_size
        if params.is_training:
            if params.shuffle:
                dataset = dataset.shuffle(params.num_examples, seed=3)
            dataset = dataset.repeat()
        dataset = dataset.batch(size, drop_remainder=params.drop_remainder)
        if input_context is not None and input_context.num_input_pipelines > 1:
            share = input_context.get_per_replica_batch_size(size)
            first = input_context.input_pipeline_id * share
            dataset = dataset.map(
                lambda *batch: tf.nest.map_structure(lambda x: x[first : first + share], batch)
            )
            dataset = dataset.unbatch().batch(share, drop_remainder=True)
        return dataset.prefetch(2)

    def build_losses(
        self, labels: Any, model_outputs: Any, aux_losses: Optional[Any] = None
    ) -> Any:
        loss = keras.ops.mean(
            keras.losses.sparse_categorical_crossentropy(labels, model_outputs, from_logits=True)
        )
        return base_task.add_losses(loss, aux_losses)

    def build_metrics(self, training: bool = True) -> list[keras.metrics.Metric]:
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def train_step(
        self, inputs: Any, model: keras.Model, optimizer: Any, metrics: Any = None
    ) -> dict[str, Any]:
        features, labels = inputs
        return super().train_step((self.images(features), labels), model, optimizer, metrics)

    def images(self, features: dict[str, Any]) -> Any:
        """The images to train on, spoilt as the config asks."""
        images = features["image"]
        index = keras.ops.reshape(features["index"], (-1, 1, 1, 1))
        if self.task_config.explode_at >= 0:
            bad = keras.ops.equal(index, self.task_config.explode_at)
            images = keras.ops.where(bad, keras.ops.full_like(images, float("nan")), images)
        if self.task_config.bright_example >= 0:
            bright = keras.ops.equal(index, self.task_config.bright_example)
            images = keras.ops.where(bright, images * 300.0, images)
        return images

    def validation_step(
        self, inputs: Any, model: keras.Model, metrics: Any = None
    ) -> dict[str, Any]:
        features, labels = inputs
        logs = super().validation_step((features["image"], labels), model, metrics)
        return {**logs, "index": features["index"]}

    def aggregate_logs(self, state: Any, step_outputs: dict[str, Any]) -> Any:
        return [*(state or []), *np.ravel(step_outputs["index"]).tolist()]

    def reduce_aggregated_logs(
        self, aggregated_logs: Any, global_step: Optional[int] = None
    ) -> dict:
        return {"examples_seen": len(aggregated_logs), "examples_once": len(set(aggregated_logs))}
