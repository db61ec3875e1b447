import inspect
import json
import os

import keras
import numpy as np
import pytest

from hortus import engine, hyperparams
from hortus.core import (
    actions,
    base_trainer,
    checkpoints,
    distribute_utils,
    exp_factory,
    run_record,
    train_lib,
)
from hortus.core import config_definitions as cfg
from hortus.core.run_lock import RunLock, RunLockedError
from hortus.testing import tiny_task


@pytest.fixture(scope="module")
def strategy():
    return distribute_utils.get_distribution_strategy("one_device")


@pytest.fixture
def run(strategy, tmp_path):
    """Runs the tiny experiment with changes, and returns model and logs."""

    def run(mode="train_and_eval", task_cls=tiny_task.TinyTask, options=None, to="", **changes):
        params = exp_factory.get_exp_config("tiny")
        params.override({"task": {"model": {"batch_norm": False}}})
        params.override(changes)
        with strategy.scope():
            task = task_cls(params.task)
        arguments = {"enable_async_checkpointing": False, **(options or {})}
        return train_lib.run_experiment(strategy, task, mode, params, tmp_path / to, **arguments)

    return run


def history(folder, split=None):
    path = folder / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line["step"] for line in lines if split in (None, line["split"])]


def weights(model):
    return [np.array(keras.ops.convert_to_numpy(v)) for v in model.trainable_variables]


def same(first, second, tolerance=0.0):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


# ---- the folder -------------------------------------------------------------------------------


def contents(folder):
    """Every file below a folder, with its bytes."""
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


class Named(tiny_task.TinyTask):
    """Knows the names of its classes."""

    names = ("a", "b")

    def learnt_classes(self):
        return self.names


class Renamed(Named):
    names = ("c", "d")


def test_a_run_writes_down_who_it_is(run, tmp_path):
    run("train", Named, trainer={"train_steps": 4})
    identity = run_record.identity(tmp_path)
    assert identity.experiment == "tiny"
    assert type(identity.new_config().task) is tiny_task.TinyTaskConfig
    config = cfg.ExperimentConfig(task=tiny_task.TinyTaskConfig())
    config.override(hyperparams.load_overrides(tmp_path / "params.yaml"))
    assert config.trainer.train_steps == 4
    assert json.loads((tmp_path / "class_names.json").read_text()) == ["a", "b"]
    assert not (tmp_path / "run.lock").exists()
    run("train", Named, trainer={"train_steps": 8})
    assert len(run_record.read(tmp_path)) == 2


def test_a_refused_run_changes_nothing(run, tmp_path):
    settings = {
        "best_checkpoint_export_subdir": "best",
        "best_checkpoint_eval_metric": "validation_loss",
        "best_checkpoint_metric_comp": "lower",
        "early_stopping": {"patience": 5},
    }
    run(task_cls=Named, trainer={**settings, "train_steps": 8})
    before = contents(tmp_path)
    for mode in ("train", "train_and_eval", "eval"):
        with pytest.raises(checkpoints.CheckpointError):
            run(mode, Renamed, task={"model": {"batch_norm": True}}, trainer=settings)
        assert contents(tmp_path) == before
    _, logs = run(task_cls=Named, trainer={**settings, "train_steps": 12})  # and it goes on
    assert logs


def test_a_run_that_cannot_start_leaves_nothing(run, tmp_path):
    (tmp_path / "empty").mkdir()
    absent = {"init_checkpoint": str(tmp_path / "absent")}
    with pytest.raises(hyperparams.ConfigError, match=r"absent cannot be read.*=null"):
        run("train", to="new/run", task=absent)
    with pytest.raises(checkpoints.CheckpointError, match="there is no checkpoint at"):
        run("train", to="new/run", task={"init_checkpoint": str(tmp_path / "empty")})
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
    # A run that has weights of its own needs no others.
    run("train", to="mine", trainer={"train_steps": 4})
    run("train", to="mine", task=absent, trainer={"train_steps": 8})


def test_a_second_writer_is_refused_and_readers_are_not(run, tmp_path):
    run("train", trainer={"train_steps": 4})
    with RunLock(tmp_path):
        before = contents(tmp_path)
        with pytest.raises(RunLockedError, match="is being written to"):
            run("train")
        assert contents(tmp_path) == before
        assert run("eval")[1]["validation_loss"] > 0
        # A trial writes nothing there.
        run("train", trainer={"fast_dev_run": True})


def test_a_run_whose_lock_is_lost_ends(run, tmp_path):
    class Thief(actions.Action):
        def __call__(self, logs):
            runner_lock = next(a.lock for a in self.controller._actions if hasattr(a, "lock"))
            runner_lock._lost = {"pid": 1, "host": "far"}

    with pytest.raises(RunLockedError, match="process 1 on far has gone on with the run"):
        run("train", options={"train_actions": Thief()}, trainer={"train_steps": 12})
    assert not (tmp_path / "ckpt-8").exists()


def test_the_function_takes_what_the_runner_takes():
    expected = inspect.signature(train_lib.ExperimentRunner)
    assert inspect.signature(train_lib.run_experiment) == expected
    assert len(expected.parameters) == 15
    with pytest.raises(ValueError, match="unknown mode 'trian'"):
        train_lib.run_experiment(None, None, "trian", None, "x")


# ---- modes ------------------------------------------------------------------------------------


def test_modes(run, tmp_path):
    """One after the other, in one folder: each goes on where the one before it stopped."""

    def steps(count, interval=4):
        return {"train_steps": count, "validation_interval": interval}

    _, logs = run("train", trainer=steps(4))
    assert logs == {} and history(tmp_path, "train") == [4]
    _, logs = run("train_and_post_eval", trainer=steps(8))
    assert logs["examples_once"] == 21 and history(tmp_path, "validation") == [8]
    _, logs = run("train_and_eval", trainer=steps(12))
    assert history(tmp_path, "validation") == [8, 12]
    _, logs = run("train_and_validate", trainer=steps(20, interval=8))
    assert history(tmp_path, "validation") == [8, 12, 16, 20]
    model, logs = run("continuous_train_and_eval", trainer=steps(28, interval=100))
    assert history(tmp_path, "validation") == [8, 12, 16, 20, 24, 28]
    assert history(tmp_path, "train") == [4, 8, 12, 16, 20, 24, 28]
    evaluated, again = run("eval")
    assert again == pytest.approx(logs)
    same(weights(evaluated), weights(model))
    _, again = run("continuous_eval", trainer={"train_steps": 28})
    assert again == pytest.approx(logs)
    assert history(tmp_path, "validation") == [8, 12, 16, 20, 24, 28]
    _, logs = run("train", trainer=steps(29), options={"run_post_eval": True})
    assert logs["examples_once"] == 21


def test_continuous_evaluation_ends_after_its_timeout(run, tmp_path):
    run("train", trainer={"train_steps": 4})
    _, logs = run("continuous_eval", trainer={"continuous_eval_timeout": 0, "train_steps": 1000})
    assert logs["examples_once"] == 21


def test_an_unknown_mode(run):
    with pytest.raises(ValueError, match=r"unknown mode 'trian'.*train"):
        run("trian")


def test_nothing_to_evaluate(run):
    with pytest.raises(checkpoints.CheckpointError, match=r"train first, or set.*init_checkpoint"):
        run("eval")


def test_summaries_are_left_out_on_demand(run, tmp_path):
    run(trainer={"train_steps": 4}, options={"save_summary": False})
    assert not (tmp_path / "train").exists() and not (tmp_path / "validation").exists()
    assert history(tmp_path) == [4, 4]


def test_a_trainer_and_a_controller_of_ones_own(run, tmp_path):
    built = []

    class Controller(train_lib.Controller):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            built.append(self)

    class Trainer(train_lib.base_trainer.Trainer):
        def train_loop_end(self):
            return {**super().train_loop_end(), "training_loss": 7.0}

    seen = []
    run(
        trainer={"train_steps": 4},
        options={
            "controller_cls": Controller,
            "trainer_cls": Trainer,
            "train_actions": [lambda logs: seen.append(logs["training_loss"])],
            "eval_actions": lambda logs: seen.append(logs["examples_seen"]),
        },
    )
    assert len(built) == 1 and seen == [7.0, 21]


# ---- resuming ---------------------------------------------------------------------------------


def test_other_steps_and_another_schedule_on_resume(run, tmp_path):
    rate = {"type": "cosine", "cosine": {"initial_learning_rate": 0.1, "decay_steps": 8}}
    optimizer = {"optimizer_config": {"learning_rate": rate}}
    run(trainer={"train_steps": 4, **optimizer})
    run(trainer={"train_steps": 8, **optimizer})
    assert history(tmp_path) == [4, 4, 8, 8]
    rate["cosine"]["decay_steps"] = 16
    run(trainer={"train_steps": 12, **optimizer})
    last = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-2])
    assert last["split"] == "train" and last["step"] == 12
    # The schedule is a function of the step: half way and a quarter more on the new one.
    expected = 0.05 * (1 + np.cos(np.pi * 12 / 16))
    assert last["values"]["learning_rate"] == pytest.approx(expected, rel=1e-5)
    run(trainer={"train_steps": 8, **optimizer})  # there already: nothing is undone
    assert history(tmp_path) == [4, 4, 8, 8, 12, 12]
    assert (tmp_path / "ckpt-12").is_dir()


def test_given_steps_are_the_same_in_one_run_or_in_three(run, tmp_path):
    task = {"model": {"dropout": 0.3}, "train_data": {"shuffle": True}}
    ema = {"optimizer_config": {"ema": {"average_decay": 0.5}}}
    for steps in (4, 8, 12):
        model, logs = run(to="parts", task=task, trainer={"train_steps": steps, **ema})
    whole, expected = run(to="whole", task=task, trainer={"train_steps": 12, **ema})
    same(weights(model), weights(whole))
    assert logs == expected
    assert (tmp_path / "parts" / "ema_checkpoints" / "ckpt-12").is_dir()


# ---- quick checks -----------------------------------------------------------------------------


@pytest.mark.parametrize(("wanted", "steps"), [(True, 3), (5, 5)])
def test_a_fast_run_does_everything_and_leaves_nothing(run, tmp_path, wanted, steps):
    seen = []
    _, logs = run(
        trainer={
            "fast_dev_run": wanted,
            "train_steps": 10**6,
            "best_checkpoint_export_subdir": "best",
            "best_checkpoint_eval_metric": "accuracy",
        },
        options={"train_actions": lambda logs: seen.append(1)},
    )
    assert seen == [1] and logs["examples_once"] == 8 * min(steps, 3) - 3 * (steps >= 3)
    assert os.listdir(tmp_path) == []


def test_overfitting_uses_the_first_batches_only(run, strategy, tmp_path):
    model, _ = run("train", trainer={"overfit_batches": 2, "train_steps": 8})
    assert model is not None
    params = exp_factory.get_exp_config("tiny")
    params.override({"trainer": {"overfit_batches": 2}, "task": {"train_data": {"shuffle": True}}})
    with strategy.scope():
        task = tiny_task.TinyTask(params.task)
        trainer = base_trainer.Trainer(params, task, task.build_model(), train=False)
    batches = [trainer.engine.next_batch(trainer.train_feed)[0]["index"] for _ in range(4)]
    np.testing.assert_array_equal(batches[:2], batches[2:])
    assert set(batches[0]).isdisjoint(batches[1])


def test_a_fault_in_evaluation_shows_before_the_first_step(run, tmp_path):
    class Faulty(tiny_task.TinyTask):
        def validation_step(self, inputs, model, metrics=None):
            raise ZeroDivisionError("in the evaluation")

        def train_step(self, *args, **kwargs):
            raise AssertionError("trained before")

    with pytest.raises(ZeroDivisionError, match="in the evaluation"):
        run(task_cls=Faulty, trainer={"sanity_validation_steps": 1})


def test_the_sanity_check_is_not_on_record(run, tmp_path):
    best = {
        "best_checkpoint_export_subdir": "best",
        "best_checkpoint_eval_metric": "validation_loss",
        "best_checkpoint_metric_comp": "higher",  # by which the first weights would be the best
    }
    run(trainer={"sanity_validation_steps": 2, "train_steps": 4, **best})
    assert history(tmp_path, "validation") == [4]
    assert sorted(path.name for path in (tmp_path / "best").iterdir()) == [
        "best_ckpt-4",
        "info.json",
    ]


def test_time_is_over(run, tmp_path, capsys):
    run("train", trainer={"max_time": 0.001, "train_steps": 10**6})
    assert "time of 0.001 seconds is over" in capsys.readouterr().err
    steps = sorted(int(path.name.removeprefix("ckpt-")) for path in tmp_path.glob("ckpt-*"))
    # That of the beginning, and that of the end if a step was done before the time was over.
    assert steps[0] == 0 and len(steps) <= 2 and steps[-1] <= 2


def test_early_stopping_ends_a_run_for_good(run, tmp_path, capsys):
    stopping = {"patience": 2, "metric": "validation_loss", "metric_comp": "lower"}
    rate = {"type": "constant", "constant": {"learning_rate": 0.0}}
    changes = {
        "train_steps": 100,
        "early_stopping": stopping,
        "optimizer_config": {"learning_rate": rate},
    }
    run(trainer=changes)
    assert history(tmp_path, "validation") == [4, 8, 12]
    assert "validation_loss has not improved in 2 evaluations" in capsys.readouterr().err
    run(trainer=changes)
    assert history(tmp_path, "validation") == [4, 8, 12]


def test_the_best_checkpoint_is_kept_and_can_be_started_from(run, tmp_path, capsys):
    class Peak(tiny_task.TinyTask):
        def reduce_aggregated_logs(self, aggregated_logs, global_step=None):
            return {"peak": -abs(global_step - 8)}

    best = {"best_checkpoint_export_subdir": "best", "best_checkpoint_eval_metric": "peak"}
    run(task_cls=Peak, trainer=best)
    assert json.loads((tmp_path / "best" / "info.json").read_text())["peak"] == 0
    exported = tmp_path / "best" / "best_ckpt-8"
    at_twelve, _ = run("eval", task={"init_checkpoint": str(exported)})
    assert "loaded" not in capsys.readouterr().err  # the run's own checkpoint goes before
    at_eight, logs = run("eval", to="new", task={"init_checkpoint": str(exported)})
    assert logs["examples_once"] == 21 and "4 loaded" in capsys.readouterr().err
    with pytest.raises(AssertionError):
        same(weights(at_eight), weights(at_twelve))


# ---- how steps are run ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"runtime": {"run_eagerly": True}},
        {"trainer": {"train_tf_function": False, "eval_tf_function": False}},
    ],
    ids=["run", "one_by_one"],
)
def test_eagerly_trained_weights_are_the_same(run, changes):
    trainer = {"train_steps": 3, "steps_per_loop": 3}
    expected, _ = run(to="compiled", trainer=trainer)
    changes = {**changes, "trainer": {**trainer, **changes.get("trainer", {})}}
    model, _ = run(to="eager", **changes)
    same(weights(model), weights(expected), 1e-6)  # other kernels may be chosen


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX always compiles with XLA")
def test_xla_trains_the_same_weights(run):
    trainer = {"train_steps": 4}
    plain, _ = run("train", to="plain", trainer=trainer)
    model, _ = run("train", to="xla", trainer=trainer, runtime={"enable_xla": True})
    same(weights(model), weights(plain), 1e-6)


# ---- faults -----------------------------------------------------------------------------------


def out_of_memory():
    if keras.backend.backend() == "jax":
        return RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.")
    import tensorflow as tf

    return tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")


@pytest.mark.parametrize(
    ("size", "parts", "expected"),
    [
        (16, 1, ["16 examples per batch on 1 device", "steps=2", "global_batch_size=8", "float16"]),
        (6, 2, ["global_batch_size=3"]),
    ],
)
def test_too_little_memory_is_told_with_advice(run, size, parts, expected):
    class Greedy(tiny_task.TinyTask):
        def train_step(self, *args, **kwargs):
            raise out_of_memory()

    with pytest.raises(engine.EngineError) as error:
        run(
            "train",
            Greedy,
            task={"train_data": {"global_batch_size": size}},
            trainer={"gradient_accumulation_steps": parts},
        )
    for part in expected:
        assert part in str(error.value)
    assert ("accumulation" in str(error.value)) == (parts == 1)  # 6 is no multiple of 4


def test_a_full_disk_is_not_called_a_lack_of_memory(run):
    class Full(tiny_task.TinyTask):
        def train_step(self, *args, **kwargs):
            error = out_of_memory()
            text = "RESOURCE_EXHAUSTED: train/events.out: No space left on device"
            raise type(error)(*([None, None] if hasattr(error, "op") else []), text)

    with pytest.raises(engine.disk.DiskFullError, match=r"is full .* start the same command"):
        run("train", Full)


def test_too_little_memory_for_the_model_itself_is_told(run):
    class Greedy(tiny_task.TinyTask):
        def build_model(self):
            raise out_of_memory()

    with pytest.raises(engine.EngineError, match="ran out of memory"):
        run("train", Greedy)


def test_the_advice_fits_the_devices(strategy):
    params = exp_factory.get_exp_config("tiny")
    runner = train_lib.ExperimentRunner(strategy, None, "train", params, "")
    assert "on 8 devices" in runner._memory_advice(replicas=8)
    assert "global_batch_size=8" in runner._memory_advice(replicas=8)


def test_the_end_of_the_data_is_told(run):
    class Once(tiny_task.TinyTask):
        def build_inputs(self, params, input_context=None):
            return super().build_inputs(params, input_context).take(2)

    with pytest.raises(engine.EngineError, match="the training data came to its end"):
        run("train", Once)


def test_empty_validation_data_is_told(run):
    class Empty(tiny_task.TinyTask):
        def build_inputs(self, params, input_context=None):
            dataset = super().build_inputs(params, input_context)
            return dataset if params.is_training else dataset.take(0)

    with pytest.raises(ValueError, match="the validation data is empty"):
        run(task_cls=Empty, trainer={"train_steps": 4})


class TwoTerms(tiny_task.TinyTask):
    """Tells the terms of its loss."""

    def train_step(self, inputs, model, optimizer, metrics=None):
        logs = super().train_step(inputs, model, optimizer, metrics)
        return {**logs, "class_loss": logs["loss"] * 0.5, "constant_loss": keras.ops.ones(())}


def test_what_diverges_is_tried_again_and_then_told(run, tmp_path, caplog):
    # Example 37 is in the third of the four batches that come again and again.
    with pytest.raises(actions.DivergedError) as error:
        run(
            "train",
            TwoTerms,
            task={"explode_at": 37},
            trainer={"recovery_max_trials": 2, "train_steps": 20},
        )
    message = str(error.value)
    assert "diverged at step 4: training_loss is nan" in message
    assert "Step 3 did it (" in message and "(trials: 2)" in message
    assert "class_loss is nan" in message and "constant_loss" not in message
    batch = tmp_path / "diverged" / "batch_of_step_3.npz"
    assert f"its batch is in {batch}." in message
    with np.load(batch) as saved:
        assert 37 in saved["0/index"] and saved["0/image"].shape == (16, 8, 8, 3)
        assert saved["1"].shape == (16,)
    assert not (tmp_path / "ckpt-4").exists()  # no checkpoint holds what diverged


def test_what_diverges_once_is_left_behind(run, tmp_path):
    # The batch with example 37 comes once in eight steps; going back, training goes on after it.
    model, _ = run(
        "train",
        task={"explode_at": 37, "train_data": {"num_examples": 128}},
        trainer={"recovery_max_trials": 1, "train_steps": 4},
    )
    assert all(np.all(np.isfinite(weight)) for weight in weights(model))
    assert history(tmp_path) == [4]


class Echo(base_trainer.Trainer):
    """Uses each batch twice: a step of a user's own, as docs/trainer_and_launcher.md has it."""

    def train_step(self, iterator):
        def step_fn(inputs):
            for _ in range(2):
                logs = self.task.train_step(
                    inputs, model=self.model, optimizer=self.optimizer, metrics=self.train_metrics
                )
            self.train_loss.update_state(logs[self.task.loss])
            self.global_step.assign_add(1)
            return logs

        inputs = self.next_train_inputs(iterator)
        return self.strategy.run(self.engine.with_xla(step_fn), args=(inputs,))


# The loss that is not finite is the first of step 2, which is the only one, or one of two.
@pytest.mark.parametrize(("base", "first_bad"), [(base_trainer.Trainer, 2.0), (Echo, 3.0)])
def test_what_diverges_only_at_the_first_time_is_told_as_such(base, first_bad, strategy, tmp_path):
    class Transient(tiny_task.TinyTask):
        def __init__(self, params):
            super().__init__(params)
            self.first_bad = keras.Variable(first_bad, trainable=False, aggregation="mean")
            self.step = keras.Variable(0.0, trainable=False, aggregation="mean")

        def build_losses(self, labels, model_outputs, aux_losses=None):
            loss = super().build_losses(labels, model_outputs, aux_losses)
            self.step.assign(self.step + 1.0)
            return loss + keras.ops.where(self.step >= self.first_bad, np.nan, 0.0)

    class Healing(base):
        def find_divergence(self, *args, **kwargs):
            self.task.first_bad.assign(1e9)
            return super().find_divergence(*args, **kwargs)

    params = exp_factory.get_exp_config("tiny")
    with strategy.scope():
        task = Transient(params.task)
        optimizer = task.create_optimizer(params.trainer.optimizer_config)
        trainer = Healing(params, task, task.build_model(), optimizer)
    with pytest.raises(actions.DivergedError) as error:
        train_lib.run_experiment(strategy, task, "train", params, tmp_path, trainer=trainer)
    assert "It began in step 2, whose batch is in" in str(error.value)
    assert "did not diverge: suspect the hardware" in str(error.value)
    with np.load(tmp_path / "diverged" / "batch_of_step_2.npz") as saved:
        np.testing.assert_array_equal(saved["0/index"], np.arange(16, 32))


def test_a_loss_above_the_bound_is_found_too(run):
    with pytest.raises(actions.DivergedError, match=r"Step 1 did it \(loss is 2\.\d+\)"):
        run("train", trainer={"loss_upper_bound": 1.0})


def test_recovery_can_be_switched_off(run):
    model, _ = run(
        "train",
        task={"explode_at": 37},
        trainer={"recovery_max_trials": -1, "train_steps": 4},
    )
    assert np.isnan(weights(model)[0]).any()
    assert cfg.TrainerConfig().recovery_max_trials == 0
