import numpy as np
import pytest

from hortus.core import base_trainer, distribute_utils, exp_factory, metrics, task_factory
from hortus.core.base_trainer import Trainer
from hortus.testing import tiny_task


def make_trainer(overrides=None, cls=Trainer, **options):
    config = exp_factory.get_exp_config("tiny")
    config.override(overrides or {})
    with distribute_utils.get_distribution_strategy("one_device").scope():
        task = task_factory.get_task(config.task)
        optimizer = task.create_optimizer(config.trainer.optimizer_config)
        return cls(config, task, task.build_model(), optimizer, **options)


class Hooked(Trainer):
    """Tells when its hooks are called."""

    def __init__(self, *arguments, **options):
        self.called = []
        super().__init__(*arguments, **options)

    def train_loop_begin(self):
        self.called.append("begin")
        super().train_loop_begin()

    def next_train_inputs(self, iterator):
        self.called.append("inputs")  # when the step is traced
        return super().next_train_inputs(iterator)

    def train_loop_end(self):
        self.called.append("end")
        return {**super().train_loop_end(), "mine": 1}

    def eval_begin(self):
        self.called.append("eval begin")
        super().eval_begin()

    def eval_reduce(self, state=None, step_outputs=None):
        self.called.append("reduce")
        return super().eval_reduce(state, step_outputs)


def test_a_loop_calls_its_hooks_and_returns_logs():
    trainer = make_trainer(cls=Hooked)
    logs = trainer.train(2)
    assert set(logs) == {"training_loss", "accuracy", "learning_rate", "mine"}
    assert (trainer.called[0], trainer.called[-1]) == ("begin", "end")
    assert "inputs" in trainer.called
    assert metrics.to_float(trainer.global_step) == 2 and trainer.timing.steps == 2
    assert trainer.timing.examples == 32


def test_parts_of_a_loop_have_the_logs_of_the_whole():
    whole = make_trainer().train(4)
    trainer = make_trainer()
    assert trainer.train_part(1, first=True, last=False) == {}
    parts = trainer.train_part(3, first=False, last=True)
    # The same steps, compiled once for both.
    assert parts["training_loss"] == pytest.approx(whole["training_loss"], rel=1e-6)
    assert parts["accuracy"] == whole["accuracy"]


def test_an_evaluation_counts_each_example_once():
    trainer = make_trainer(cls=Hooked)
    logs = trainer.evaluate()
    assert (logs["examples_seen"], logs["examples_once"]) == (21, 21)
    assert trainer.called == ["eval begin", "reduce", "reduce", "reduce"]
    # The mean over examples, though the last batch has 5 of 8.
    images, labels = tiny_task.arrays(21)
    outputs = trainer.model(images)
    expected = trainer.task.build_losses(labels, outputs, aux_losses=trainer.model.losses)
    # Sums of float32 in another order.
    assert logs["validation_loss"] == pytest.approx(metrics.to_float(expected), rel=1e-5)
    assert trainer.evaluate(1)["examples_seen"] == 8


def test_no_validation_data_is_an_error():
    with pytest.raises(ValueError, match="the validation data is empty"):
        make_trainer({"task": {"validation_data": {"num_examples": 0}}}).evaluate()


def test_training_needs_an_optimizer_and_evaluation_none():
    trainer = make_trainer()
    with pytest.raises(ValueError, match="needs an optimizer"):
        Trainer(trainer.config, trainer.task, trainer.model)
    evaluator = Trainer(trainer.config, trainer.task, trainer.model, train=False)
    assert evaluator.evaluate()["examples_seen"] == 21


def test_the_first_step_that_is_not_finite_is_known():
    trainer = make_trainer({"task": {"explode_at": 40}})  # in the third batch of 16
    assert np.isfinite(trainer.train(2)["training_loss"]) and trainer.first_bad_step is None
    assert np.isnan(trainer.train(3)["training_loss"])
    assert trainer.first_bad_step == 3


def test_a_checkpoint_has_all_that_it_takes_to_go_on():
    names = set(make_trainer().checkpoint.items)
    assert names == {
        *("model", "optimizer", "global_step", "train_loss", "train_metrics", "task", "data"),
    }


def test_data_can_stay_where_they_are_in_a_restore():
    trainer = make_trainer()
    with trainer.keeping_data():
        assert trainer.train_feed.stays
    assert not trainer.train_feed.stays


def test_the_average_of_an_optimizer_is_found_inside_of_others():
    average = {"trainer": {"optimizer_config": {"ema": {"average_decay": 0.9}}}}
    found = base_trainer.average_of(make_trainer(average).optimizer)
    assert found is not None and hasattr(found, "swap_weights")
    assert base_trainer.average_of(make_trainer().optimizer) is None
