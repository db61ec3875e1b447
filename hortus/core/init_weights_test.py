import pytest

from hortus import hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import init_weights


@pytest.mark.parametrize("path", ["gs://bucket/ckpt-3", "https://host/x", "no/such/folder"])
def test_weights_that_cannot_be_had_are_told_with_what_to_do(path):
    params = cfg.ExperimentConfig(task=cfg.TaskConfig())
    params.override({"task": {"init_checkpoint": path}})
    assert init_weights.problem(path)
    with pytest.raises(hyperparams.ConfigError) as error:
        init_weights.check(params)
    for text in (path, "task.init_checkpoint=null", "folder of a run", "cannot be read"):
        assert text in str(error.value)


def test_weights_that_are_there_pass(tmp_path):
    (tmp_path / "tf-1.index").write_text("")
    for path in ("", str(tmp_path), str(tmp_path / "tf-1")):
        params = cfg.ExperimentConfig(task=cfg.TaskConfig(init_checkpoint=path))
        init_weights.check(params)
        assert init_weights.problem(path) is None
