import json
import os

import keras
import numpy as np
import pytest

from hortus.core.checkpoints import atomic_folder, errors
from hortus.core.checkpoints.best_exporter import BestCheckpointExporter
from hortus.core.checkpoints.checkpoint import Checkpoint


@pytest.fixture
def variable():
    return keras.Variable(0.0)


@pytest.fixture
def checkpoint(variable):
    return Checkpoint(x=variable)


def info(folder):
    return json.loads((folder / "info.json").read_text())


@pytest.mark.parametrize(
    ("comparison", "values", "expected"),
    [
        ("higher", [0.5, 0.4, 0.5, 0.6], [True, False, False, True]),
        ("lower", [0.5, 0.6, 0.5, 0.4], [True, False, False, True]),
    ],
)
def test_only_what_is_better_is_exported(
    tmp_path, checkpoint, variable, comparison, values, expected
):
    exporter = BestCheckpointExporter(tmp_path, "accuracy", comparison)
    assert exporter.best_ckpt_logs is None
    assert exporter.best_ckpt_path is None
    exported = []
    for step, value in enumerate(values):
        variable.assign(float(step))
        exported.append(exporter.maybe_export_checkpoint(checkpoint, {"accuracy": value}, step))
    assert exported == expected
    assert sorted(os.listdir(tmp_path)) == ["best_ckpt-3", "info.json"]
    assert exporter.best_ckpt_path == str(tmp_path / "best_ckpt-3")
    assert info(tmp_path)["accuracy"] == values[3]
    assert info(tmp_path)["best_ckpt_global_step"] == 3
    assert exporter.best_ckpt_logs == info(tmp_path)
    assert checkpoint.restore(exporter.best_ckpt_path) == 3
    assert float(variable) == 3.0


def test_one_of_another_step_than_its_name_says_is_not_the_best(tmp_path, checkpoint):
    exporter = BestCheckpointExporter(tmp_path, "accuracy", "higher")
    assert exporter.maybe_export_checkpoint(checkpoint, {"accuracy": 0.5}, 10)
    checkpoint.save(tmp_path / "best_ckpt-5", 5)
    assert exporter.best_ckpt_path == str(tmp_path / "best_ckpt-10")
    checkpoint.save(tmp_path / "best_ckpt-10", 8)
    told = r"best_ckpt-10 has the name of step 10, but its content is of step 8"
    with pytest.warns(errors.CheckpointWarning, match=told):
        assert exporter.best_ckpt_path == str(tmp_path / "best_ckpt-5")


def test_it_survives_a_restart(tmp_path, checkpoint):
    first = BestCheckpointExporter(tmp_path, "accuracy", "higher")
    assert first.maybe_export_checkpoint(checkpoint, {"accuracy": 0.5}, 10)
    second = BestCheckpointExporter(tmp_path, "accuracy", "higher")
    assert second.best_ckpt_logs["accuracy"] == 0.5
    assert second.best_ckpt_path == str(tmp_path / "best_ckpt-10")
    assert not second.maybe_export_checkpoint(checkpoint, {"accuracy": 0.4}, 20)
    assert second.maybe_export_checkpoint(checkpoint, {"accuracy": 0.6}, 30)
    assert sorted(os.listdir(tmp_path)) == ["best_ckpt-30", "info.json"]


def test_nested_names(tmp_path, checkpoint):
    exporter = BestCheckpointExporter(tmp_path, "coco|AP|small", "higher")
    logs = {"coco": {"AP": {"small": np.float32(0.25)}}, "picture": np.zeros((64, 64, 3))}
    assert exporter.maybe_export_checkpoint(checkpoint, logs, 1)
    assert info(tmp_path)["coco"] == {"AP": {"small": 0.25}}
    assert "picture" not in info(tmp_path)


@pytest.mark.parametrize("comparison", ["higher", "lower"])
def test_nan_is_never_the_best(tmp_path, checkpoint, comparison):
    exporter = BestCheckpointExporter(tmp_path / "new", "loss", comparison)
    assert not exporter.maybe_export_checkpoint(checkpoint, {"loss": float("nan")}, 1)
    assert not (tmp_path / "new").exists()
    assert exporter.maybe_export_checkpoint(checkpoint, {"loss": keras.ops.ones(())}, 2)
    assert not exporter.maybe_export_checkpoint(checkpoint, {"loss": np.nan}, 3)


def test_a_missing_metric_is_told_with_near_names(tmp_path, checkpoint):
    exporter = BestCheckpointExporter(tmp_path, "acuracy", "higher")
    with pytest.raises(errors.CheckpointError, match=r"'acuracy' is not in .* mean accuracy"):
        exporter.maybe_export_checkpoint(checkpoint, {"accuracy": 0.5, "loss": 1.0}, 1)
    nested = BestCheckpointExporter(tmp_path, "coco|APP", "higher")
    with pytest.raises(errors.CheckpointError, match=r"Did you mean coco\|AP"):
        nested.maybe_export_checkpoint(checkpoint, {"coco": {"AP": 0.5}}, 1)
    assert os.listdir(tmp_path) == []


def test_a_metric_that_is_no_number_is_told(tmp_path, checkpoint):
    exporter = BestCheckpointExporter(tmp_path, "coco", "higher")
    with pytest.raises(errors.CheckpointError, match=r"number but a dict\. Inside of it: AP"):
        exporter.maybe_export_checkpoint(checkpoint, {"coco": {"AP": 0.5}}, 1)
    with pytest.raises(errors.CheckpointError, match="not one number but a list"):
        exporter.maybe_export_checkpoint(checkpoint, {"coco": [0.5, 0.6]}, 1)


def test_another_metric_than_before_is_told(tmp_path, checkpoint):
    BestCheckpointExporter(tmp_path, "a", "higher").maybe_export_checkpoint(checkpoint, {"a": 1}, 1)
    other = BestCheckpointExporter(tmp_path, "b", "higher")
    with pytest.raises(errors.CheckpointError, match=r"info\.json is of an evaluation without"):
        other.maybe_export_checkpoint(checkpoint, {"b": 1}, 2)


def test_an_unreadable_info_is_not_overwritten(tmp_path, checkpoint):
    (tmp_path / "info.json").write_text('{"accuracy": 0.')
    exporter = BestCheckpointExporter(tmp_path, "accuracy", "higher")
    with pytest.raises(errors.CheckpointError, match=r"info\.json cannot be read"):
        exporter.maybe_export_checkpoint(checkpoint, {"accuracy": 0.5}, 1)
    assert (tmp_path / "info.json").read_text() == '{"accuracy": 0.'


def test_logs_may_be_left_unwritten(tmp_path, checkpoint):
    exporter = BestCheckpointExporter(tmp_path, "accuracy", "higher")
    assert exporter.maybe_export_checkpoint(checkpoint, {"accuracy": 0.5}, 1, write_logs=False)
    assert os.listdir(tmp_path) == ["best_ckpt-1"]
    assert exporter.best_ckpt_path == str(tmp_path / "best_ckpt-1")
    assert not exporter.maybe_export_checkpoint(checkpoint, {"accuracy": 0.4}, 2)


def test_only_the_chief_writes(tmp_path, checkpoint):
    exporter = BestCheckpointExporter(tmp_path, "accuracy", "higher", is_chief=False)
    assert exporter.maybe_export_checkpoint(checkpoint, {"accuracy": 0.5}, 1)
    assert not exporter.maybe_export_checkpoint(checkpoint, {"accuracy": 0.4}, 2)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("stage", ["save", "replace_file", "remove"])
def test_a_kill_at_any_stage_leaves_a_best_checkpoint_with_its_logs(
    tmp_path, checkpoint, variable, monkeypatch, stage
):
    exporter = BestCheckpointExporter(tmp_path, "accuracy", "higher")
    variable.assign(1.0)
    exporter.maybe_export_checkpoint(checkpoint, {"accuracy": 0.5}, 1)

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint if stage == "save" else atomic_folder, stage, killed)
        variable.assign(2.0)
        with pytest.raises(KeyboardInterrupt):
            exporter.maybe_export_checkpoint(checkpoint, {"accuracy": 0.6}, 2)
    after = BestCheckpointExporter(tmp_path, "accuracy", "higher")
    step = checkpoint.restore(after.best_ckpt_path)
    assert step == after.best_ckpt_logs["best_ckpt_global_step"] == float(variable)
    assert step == (2 if stage == "remove" else 1)
    assert after.maybe_export_checkpoint(checkpoint, {"accuracy": 0.7}, 3)
    assert sorted(os.listdir(tmp_path)) == ["best_ckpt-3", "info.json"]


def test_wrong_arguments_are_told():
    with pytest.raises(ValueError, match="'higher' or 'lower'"):
        BestCheckpointExporter("x", "accuracy", "max")
    with pytest.raises(ValueError, match="metric_name is empty"):
        BestCheckpointExporter("x", "", "higher")
