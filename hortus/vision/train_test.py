import pytest

from hortus import hyperparams
from hortus.core import exp_factory
from hortus.core.run_lock import RunLock, RunLockedError
from hortus.testing import tiny_task
from hortus.vision import train


@pytest.fixture
def params():
    params = exp_factory.get_exp_config("tiny")
    params.override({"trainer": {"train_steps": 4}})
    return params


def test_python_users_are_told_of_mistakes_before_anything_is_written(params, tmp_path):
    params.runtime.engine = "jaxx"
    with pytest.raises(hyperparams.ConfigError, match=r"runtime\.engine.*jaxx"):
        train.run(params, "train", tmp_path / "run")
    params.runtime.engine = "tensorflow"
    with pytest.raises(ValueError, match="unknown mode 'trian'"):
        train.run(params, "trian", tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_the_config_of_a_run_is_locked_and_the_users_is_not(params, tmp_path):
    seen = []

    class Task(tiny_task.TinyTask):
        def build_model(self):
            seen.append(self.task_config)
            return super().build_model()

    from hortus.core import task_factory

    original = task_factory._TASKS[tiny_task.TinyTaskConfig]
    task_factory._TASKS[tiny_task.TinyTaskConfig] = Task
    try:
        train.run(params, "train", tmp_path)
    finally:
        task_factory._TASKS[tiny_task.TinyTaskConfig] = original
    with pytest.raises(hyperparams.ConfigError, match="locked"):
        seen[0].model.dropout = 0.5
    params.trainer.train_steps = 8
    with RunLock(tmp_path), pytest.raises(RunLockedError):
        train.run(params, "train", tmp_path)
    train.run(params, "train", tmp_path)
    assert (tmp_path / "ckpt-8").is_dir()
