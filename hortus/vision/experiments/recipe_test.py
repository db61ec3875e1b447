import pytest

from hortus.vision.configs import image_classification
from hortus.vision.experiments import recipe


def test_learning_rate_falls_by_tens_exactly():
    stepwise = recipe.step_down(0.32, at=[10, 20])["stepwise"]
    assert stepwise == {"boundaries": [10, 20], "values": [0.32, 0.032, 0.0032]}


def test_trainer_reports_saves_and_evaluates_once_per_epoch():
    trainer = recipe.trainer(
        epoch=7,
        train_steps=70,
        validation_steps=3,
        optimizer=recipe.sgd(nesterov=True),
        learning_rate=recipe.cosine(0.1, 70),
        warmup=recipe.warmup(5, start=0.01),
        max_to_keep=2,
    )
    intervals = {
        trainer.steps_per_loop,
        trainer.summary_interval,
        trainer.checkpoint_interval,
        trainer.validation_interval,
    }
    assert intervals == {7}
    assert (trainer.train_steps, trainer.validation_steps, trainer.max_to_keep) == (70, 3, 2)
    optimizer = trainer.optimizer_config
    assert optimizer.optimizer.get().momentum == 0.9
    assert optimizer.optimizer.get().nesterov
    assert optimizer.learning_rate.get().decay_steps == 70
    assert optimizer.warmup.get().warmup_learning_rate == 0.01
    assert optimizer.ema is None


def test_experiment_wants_is_training_to_be_said():
    config = recipe.experiment(
        image_classification.ImageClassificationTask(), mixed_precision_dtype="float16"
    )
    config.validate()
    assert config.runtime.mixed_precision_dtype == "float16"
    config.task.train_data.override({"is_training": False})
    config.validate()
    config.task.validation_data.__dict__["is_training"] = None
    with pytest.raises(KeyError, match="is_training"):
        config.validate()
