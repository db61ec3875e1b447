"""Tasks, metrics, losses and trainers in the style of TensorFlow 2, on one and on two replicas.

training_custom_test.py runs this in a process of its own, whose CPU counts as two devices.
"""

from typing import Any, List, Mapping, Optional, Tuple, Union

import numpy as np
import pytest

from hortus import engine

engine.select("tensorflow", virtual_cpu_devices=2)

import tensorflow as tf  # noqa: E402

from hortus.core import (  # noqa: E402
    actions,
    base_task,
    base_trainer,
    checkpoints,
    distribute_utils,
    exp_factory,
    train_lib,
)
from hortus.core import config_definitions as cfg  # noqa: E402
from hortus.testing import tiny_task  # noqa: E402

# The one of both devices first: TensorFlow wants no operation before it.
MIRRORED = distribute_utils.get_distribution_strategy("mirrored", virtual_cpu_devices=2)
STRATEGIES = {1: distribute_utils.get_distribution_strategy("one_device"), 2: MIRRORED}


@pytest.fixture(params=[1, 2], ids=["one_device", "two_devices"])
def strategy(request):
    return STRATEGIES[request.param]


def config(**changes) -> cfg.ExperimentConfig:
    params = exp_factory.get_exp_config("tiny")
    params.override(changes)
    return params


class MyMetric(tf.metrics.Metric):
    """A metric as the guides of TensorFlow 2 wrote it."""

    def __init__(self, name="my_metric"):
        super(MyMetric, self).__init__(name)  # noqa: UP008
        self.total = tf.Variable(0.0, name="total")
        self.count = tf.Variable(0.0, name="count")

    def update_state(self, y_true, y_pred, sample_weight=None):
        right = tf.cast(tf.equal(tf.cast(y_true, tf.int64), tf.argmax(y_pred, -1)), tf.float32)
        self.total.assign_add(tf.reduce_sum(right))
        self.count.assign_add(tf.cast(tf.shape(y_true)[0], tf.float32))

    def result(self):
        return self.total / self.count

    def reset_states(self):
        self.total.assign(0.0)
        self.count.assign(0.0)


class CustomLoss(tf.keras.losses.Loss):
    def __init__(self, alpha=0.25, reduction=tf.keras.losses.Reduction.NONE, name=None):
        self._alpha = alpha
        super().__init__(reduction=reduction, name=name)

    def call(self, labels, predictions):
        positive_label_mask = tf.equal(labels, 1.0)
        loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=predictions)
        return tf.where(positive_label_mask, self._alpha * loss, (1.0 - self._alpha) * loss)


class CustomTask(tiny_task.TinyTask):
    """Everything that a task may replace, replaced."""

    def build_losses(self, labels, model_outputs, aux_losses=None):
        loss = tf.reduce_mean(CustomLoss()(tf.one_hot(labels, 10), model_outputs))
        if aux_losses:
            loss += tf.add_n(aux_losses)
        return loss

    def build_metrics(self, training=True):
        return [*super().build_metrics(training), MyMetric()]

    def train_step(
        self,
        inputs: Tuple[Any, Any],
        model: tf.keras.Model,
        optimizer: tf.keras.optimizers.Optimizer,
        metrics: Optional[List[Any]] = None,
    ) -> Mapping[str, Any]:
        features, labels = inputs
        num_replicas = tf.distribute.get_strategy().num_replicas_in_sync
        with tf.GradientTape() as tape:
            outputs = model(features["image"], training=True)
            outputs = tf.nest.map_structure(lambda x: tf.cast(x, tf.float32), outputs)
            loss = self.build_losses(model_outputs=outputs, labels=labels, aux_losses=model.losses)
            scaled_loss = loss / num_replicas
            if isinstance(optimizer, tf.keras.mixed_precision.LossScaleOptimizer):
                scaled_loss = optimizer.get_scaled_loss(scaled_loss)
        tvars = model.trainable_variables
        grads = tape.gradient(scaled_loss, tvars)
        if isinstance(optimizer, tf.keras.mixed_precision.LossScaleOptimizer):
            grads = optimizer.get_unscaled_gradients(grads)
        optimizer.apply_gradients(list(zip(grads, tvars)))  # noqa: B905
        logs = {self.loss: loss}
        if metrics:
            for metric in metrics:
                metric.update_state(labels, outputs)
        return logs

    def validation_step(self, inputs, model, metrics=None):
        features, labels = inputs
        outputs = self.inference_step(features["image"], model)
        loss = self.build_losses(model_outputs=outputs, labels=labels, aux_losses=model.losses)
        logs = {self.loss: loss, "predictions": (features["index"], tf.argmax(outputs, -1))}
        if metrics:
            for metric in metrics:
                metric.update_state(labels, outputs)
        return logs

    def aggregate_logs(self, state=None, step_outputs=None):
        if state is None:
            state = PythonEvaluator()
        state.update_state(*step_outputs["predictions"])
        return state

    def reduce_aggregated_logs(self, aggregated_logs, global_step=None):
        return aggregated_logs.result()


class PythonEvaluator:
    """Counts what it is shown."""

    def __init__(self):
        self.reset_states()

    def reset_states(self):
        self._predictions = {}

    def update_state(self, index, predictions):
        # A trainer of one's own may hand over one array per replica.
        for key, value in zip(np.hstack(index), np.hstack(predictions), strict=True):
            assert key not in self._predictions
            self._predictions[int(key)] = int(value)

    def result(self):
        return {"count": len(self._predictions)}


class CustomTrainer(base_trainer.Trainer):
    """Every hook replaced, none calling the original."""

    def __init__(
        self,
        config: cfg.ExperimentConfig,
        task: base_task.Task,
        model: tf.keras.Model,
        optimizer: tf.optimizers.Optimizer,
        train_dataset: Optional[Union[tf.data.Dataset, tf.distribute.DistributedDataset]] = None,
        checkpoint_exporter=None,
    ):
        super().__init__(
            config=config,
            task=task,
            model=model,
            optimizer=optimizer,
            train_dataset=train_dataset,
            checkpoint_exporter=checkpoint_exporter,
        )
        self.calls = []

    def train_loop_begin(self):
        self.join()
        self.calls.append("train_loop_begin")

    def next_train_inputs(self, iterator):
        return next(iterator)

    def next_eval_inputs(self, iterator):
        return next(iterator), {"passed": tf.constant([1.0])}

    def train_step(self, iterator):
        def step_fn(inputs):
            if self.config.runtime.enable_xla and (self.config.runtime.num_gpus > 0):
                task_train_step = tf.function(self.task.train_step, jit_compile=True)
            else:
                task_train_step = self.task.train_step
            logs = task_train_step(
                inputs, model=self.model, optimizer=self.optimizer, metrics=self.train_metrics
            )
            self._train_loss.update_state(logs[self.task.loss])
            self.global_step.assign_add(1)

        inputs = self.next_train_inputs(iterator)
        self.strategy.run(step_fn, args=(inputs,))

    def eval_begin(self):
        self.join()
        for metric in self.validation_metrics + [self.validation_loss]:  # noqa: RUF005
            metric.reset_states()

    def eval_step(self, iterator):
        def step_fn(inputs):
            logs = self.task.validation_step(
                inputs, model=self.model, metrics=self.validation_metrics
            )
            if self.task.loss in logs:
                self._validation_loss.update_state(logs[self.task.loss])
            return logs

        inputs, passthrough_logs = self.next_eval_inputs(iterator)
        outputs = self.strategy.run(step_fn, args=(inputs,))
        logs = tf.nest.map_structure(self.strategy.experimental_local_results, outputs)
        return passthrough_logs | logs

    def eval_reduce(self, state=None, step_outputs=None):
        assert step_outputs.pop("passed") == [1.0]
        return self.task.aggregate_logs(state, step_outputs)

    def train_loop_end(self):
        self.join()
        logs = {}
        for metric in self.train_metrics + [self.train_loss]:  # noqa: RUF005
            logs[metric.name] = metric.result()
            metric.reset_states()
            if hasattr(self.optimizer, "iterations"):
                logs["learning_rate"] = self.optimizer.learning_rate(self.optimizer.iterations)
        logs["optimizer_iterations"] = self.optimizer.iterations
        return logs

    def eval_end(self, aggregated_logs=None):
        self.join()
        logs = {}
        for metric in self.validation_metrics:
            logs[metric.name] = metric.result()
        if self.validation_loss.count.numpy() != 0:
            logs[self.validation_loss.name] = self.validation_loss.result()
        if aggregated_logs:
            metrics = self.task.reduce_aggregated_logs(
                aggregated_logs, global_step=self.global_step
            )
            logs.update(metrics)
        if self._checkpoint_exporter:
            self._checkpoint_exporter.maybe_export_checkpoint(
                self.checkpoint, logs, self.global_step.numpy()
            )
        return logs


SCHEDULE = {
    "optimizer": {"type": "sgd", "sgd": {"momentum": 0.9, "global_clipnorm": 0.1}},
    "learning_rate": {
        "type": "cosine",
        "cosine": {"initial_learning_rate": 0.1, "decay_steps": 100},
    },
    "ema": {"average_decay": 0.5},
}


def build(strategy, params, task_cls=CustomTask, trainer_cls=CustomTrainer, **kwargs):
    with strategy.scope():
        task = task_cls(params.task)
        optimizer = task.create_optimizer(params.trainer.optimizer_config, params.runtime)
        return trainer_cls(params, task, task.build_model(), optimizer, **kwargs)


def weights(trainer) -> list[np.ndarray]:
    return [np.array(v) for v in trainer.model.variables]


def test_a_trainer_of_ones_own_runs_an_experiment(strategy, tmp_path):
    params = config(trainer={"optimizer_config": SCHEDULE})
    exporter = checkpoints.BestCheckpointExporter(tmp_path / "best", "accuracy", "higher")
    trainer = build(strategy, params, checkpoint_exporter=exporter)
    seen = []
    _, logs = train_lib.run_experiment(
        strategy,
        trainer.task,
        "train_and_eval",
        params,
        tmp_path,
        trainer=trainer,
        train_actions=lambda logs: seen.append({k: float(v) for k, v in logs.items()}),
    )
    assert logs["count"] == 21 and trainer.calls == ["train_loop_begin"] * 3
    assert [step["optimizer_iterations"] for step in seen] == [4, 8, 12]
    expected = 0.05 * (1 + np.cos(np.pi * np.array([4, 8, 12]) / 100))
    np.testing.assert_allclose([step["learning_rate"] for step in seen], expected, rtol=1e-5)
    assert seen[0]["accuracy"] == pytest.approx(seen[0]["my_metric"], abs=1e-6)
    assert float(logs["accuracy"]) == pytest.approx(float(logs["my_metric"]), abs=1e-6)
    assert exporter.best_ckpt_path is not None
    # The hooks know nothing of averages, and yet the weights are not theirs after an evaluation.
    assert not trainer.optimizer.is_swapped


def test_it_trains_the_weights_of_the_original(strategy):
    params = config(trainer={"optimizer_config": SCHEDULE})
    found = []
    for trainer_cls in (CustomTrainer, base_trainer.Trainer):
        trainer = build(strategy, params, trainer_cls=trainer_cls)
        with strategy.scope():
            trainer.train(3)
            trainer.evaluate(-1)
            trainer.train(3)
        found.append(weights(trainer))
    for mine, original in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, original)


def test_one_and_two_replicas_agree_on_metrics_with_variables_of_tensorflow():
    found = []
    for strategy in STRATEGIES.values():
        trainer = build(strategy, config(), trainer_cls=base_trainer.Trainer)
        with strategy.scope():
            found.append([trainer.train(2), trainer.train(1), trainer.evaluate(-1)])
    for one, two in zip(*found, strict=True):
        assert one.keys() == two.keys()
        for name in one:
            assert one[name] == pytest.approx(two[name], abs=2e-6), name  # losses near 1, float32
        assert one["my_metric"] == pytest.approx(one["accuracy"], abs=1e-6)


def test_a_distributed_dataset(strategy):
    params = config()
    task = tiny_task.TinyTask(params.task)
    dataset = task.build_inputs(params.task.train_data)
    given = strategy.experimental_distribute_dataset(dataset)
    expected = build(strategy, params, tiny_task.TinyTask, base_trainer.Trainer)
    trainer = build(strategy, params, tiny_task.TinyTask, base_trainer.Trainer, train_dataset=given)
    with strategy.scope():
        assert trainer.train(4) == expected.train(4)
    for mine, original in zip(weights(trainer), weights(expected), strict=True):
        np.testing.assert_array_equal(mine, original)


def test_a_distributed_validation_dataset(strategy):
    params = config(task={"validation_data": {"num_examples": 24}})
    dataset = tiny_task.TinyTask(params.task).build_inputs(params.task.validation_data)
    given = strategy.experimental_distribute_dataset(dataset)
    expected = build(strategy, params, tiny_task.TinyTask, base_trainer.Trainer)
    trainer = build(
        strategy, params, tiny_task.TinyTask, base_trainer.Trainer, validation_dataset=given
    )
    with strategy.scope():
        assert trainer.evaluate() == expected.evaluate()


def test_float16_without_a_scaled_loss_is_an_error(strategy):
    class Forgetful(CustomTask):
        def train_step(self, inputs, model, optimizer, metrics=None):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(inputs[0]["image"], training=True))
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
            return {self.loss: loss}

    params = config(runtime={"mixed_precision_dtype": "float16"})
    trainer = build(strategy, params, Forgetful, base_trainer.Trainer)
    with strategy.scope(), pytest.raises(RuntimeError, match="get_scaled_loss"):
        trainer.train(1)


def test_a_trainer_from_outside_of_the_scope_is_an_error(tmp_path):
    trainer = build(STRATEGIES[1], config(), trainer_cls=base_trainer.Trainer)
    with pytest.raises(ValueError, match=r"inside of `with strategy\.scope"):
        train_lib.run_experiment(
            MIRRORED, trainer.task, "train", config(), tmp_path, trainer=trainer
        )


def test_an_uneven_training_batch_is_an_error():
    params = config(
        task={"train_data": {"global_batch_size": 5, "num_examples": 64}},
    )
    trainer = build(MIRRORED, params, tiny_task.TinyTask, base_trainer.Trainer)
    with MIRRORED.scope(), pytest.raises(engine.EngineError, match="5 examples cannot be shared"):
        trainer.train(1)
    params.task.train_data.drop_remainder = False
    trainer = build(MIRRORED, params, tiny_task.TinyTask, base_trainer.Trainer)
    with MIRRORED.scope(), pytest.raises(tf.errors.InvalidArgumentError, match="drop_remainder"):
        trainer.train(1)


def test_a_resumed_run_of_two_replicas_goes_on_with_the_same_dropout(tmp_path):
    def run(folder, steps):
        params = config(
            task={"model": {"dropout": 0.5}},
            trainer={"train_steps": steps, "optimizer_config": SCHEDULE},
        )
        with MIRRORED.scope():
            task = tiny_task.TinyTask(params.task)
        return train_lib.run_experiment(MIRRORED, task, "train", params, folder)[0]

    run(tmp_path / "cut", 4)
    expected, found = run(tmp_path / "whole", 8), run(tmp_path / "cut", 8)
    for whole, resumed in zip(expected.weights, found.weights, strict=True):
        np.testing.assert_array_equal(np.array(whole), np.array(resumed))


def test_recovery_finds_a_batch_whose_part_on_one_replica_is_bad(tmp_path):
    params = config(task={"explode_at": 27})  # in the second batch, on the second replica
    with MIRRORED.scope():
        task = tiny_task.TinyTask(params.task)
    with pytest.raises(actions.DivergedError, match=r"Step 2 did it \(loss is nan\)") as error:
        train_lib.run_experiment(MIRRORED, task, "train", params, tmp_path)
    with np.load(str(error.value).split(" is in ")[1].split(".npz")[0] + ".npz") as batch:
        assert 27 in batch["0/index"] and batch["0/image"].shape == (16, 8, 8, 3)
