import json
import os
import shutil
import warnings

import numpy as np
import pytest

from hortus.core import base_trainer, checkpoints, exp_factory, task_factory
from hortus.core import config_definitions as cfg
from hortus.core.checkpoints import CheckpointError
from hortus.hyperparams import ConfigError, ConfigWarning
from hortus.testing import runs
from hortus.vision.configs import image_classification as configs
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.serving.run import load_run
from hortus.vision.serving.run_config import config_of, read_config
from hortus.vision.tasks.image_classification import ImageClassificationTask


def test_a_run_has_its_task_weights_and_names(classifier):
    run = load_run(classifier)
    assert type(run.task).__name__ == "ImageClassificationTask"
    assert run.class_names == ("circle", "square", "triangle", "star")
    assert (run.step, os.path.basename(run.checkpoint)) == (7, "ckpt-7")


@pytest.mark.parametrize(
    ("kind", "task"),
    [("detection", "RetinaNetTask"), ("segmentation", "SemanticSegmentationTask")],
)
def test_the_values_tell_the_task(kind, task, request):
    folder = request.getfixturevalue({"detection": "detector"}.get(kind, "segmenter"))
    assert type(read_config(str(folder)).task).__name__ == task
    with pytest.raises(ConfigError, match="does not fit the experiment image_classification"):
        read_config(str(folder), "image_classification")


class OwnTaskConfig(configs.ImageClassificationTask):
    """As its parent, without a field of its own."""


class OwnTask(ImageClassificationTask):
    """As its parent; only its class tells it apart."""


@pytest.fixture
def own_task():
    task_factory.register_task_cls(OwnTaskConfig)(OwnTask)
    yield
    del task_factory._TASKS[OwnTaskConfig]


def test_a_task_without_fields_of_its_own_comes_back_as_itself(own_task, tmp_path):
    params = exp_factory.get_exp_config("image_classification")
    changed = cfg.ExperimentConfig(task=OwnTaskConfig(), trainer=params.trainer)
    choices = {"optimizer": {"type": "sgd"}, "learning_rate": {"type": "constant"}}
    changed.override({"task": runs.CLASSIFICATION, "trainer": {"optimizer_config": choices}})
    runs.write_run(tmp_path, changed, ("a", "b", "c", "d"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = load_run(tmp_path)
    assert type(run.task) is OwnTask
    assert type(run.params.task) is OwnTaskConfig
    # Whoever names an experiment goes by that.
    assert type(load_run(tmp_path, experiment="image_classification").task) is (
        ImageClassificationTask
    )


def test_a_run_of_an_older_version_is_guessed_with_a_warning(classifier, tmp_path):
    folder = tmp_path / "old"
    shutil.copytree(classifier, folder)
    record = json.loads((folder / "run.json").read_text())
    for start in record["starts"]:
        for key in ("experiment", "config_classes", "modules", "hortus"):
            del start[key]
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.warns(ConfigWarning, match="no record of the classes.*ImageClassificationTask"):
        run = load_run(folder)
    assert (type(run.task), run.step) == (ImageClassificationTask, 7)
    (folder / "run.json").unlink()
    with pytest.warns(ConfigWarning, match="no record of the classes"):
        assert load_run(folder).step == 7


def test_values_of_no_task_are_a_mistake(tmp_path):
    with pytest.raises(ConfigError, match="fits none of the tasks"):
        config_of({"task": {"no_such_field": 1}}, "here")
    with pytest.raises(DataError, match=r"has no params.yaml"):
        load_run(tmp_path)


def test_averaged_weights_are_taken(tmp_path):
    params, model = runs.make_run(tmp_path, "classification", ema=True)
    task = task_factory.get_task(params.task)
    optimizer = task.create_optimizer(params.trainer.optimizer_config, params.runtime)
    average = base_trainer.average_of(optimizer)
    average.shadow_copy(model)
    optimizer.build(model.trainable_variables)
    average.update_average(1)
    for variable in average.averages:
        variable.assign(variable + 0.5)
    items = {"model": model, "optimizer": optimizer}
    checkpoints.Checkpoint(**items).save(str(tmp_path / "ckpt-9"), step=9)
    run = load_run(tmp_path, "latest")
    assert run.step == 9
    for found, trained in zip(
        run.model.trainable_variables, model.trainable_variables, strict=True
    ):
        np.testing.assert_allclose(found, np.asarray(trained) + 0.5, atol=1e-6)
    # An exported best checkpoint has the weights that were evaluated, and no optimizer.
    checkpoints.Checkpoint(model=model).save(str(tmp_path / "alone"), step=5)
    alone = load_run(tmp_path, "alone")
    np.testing.assert_array_equal(alone.model.weights[0], model.weights[0])


def test_a_checkpoint_that_is_not_there_is_told(classifier, tmp_path):
    with pytest.raises(CheckpointError, match=r"no checkpoint ckpt-8: .*best, latest, ckpt-7"):
        load_run(classifier, "ckpt-8")
    for name in ("params.yaml", "run.json"):
        shutil.copy(classifier / name, tmp_path)
    with pytest.raises(CheckpointError, match="train first"):
        load_run(tmp_path)
