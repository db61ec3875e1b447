import pytest
from absl import flags

from hortus.core import flags as hortus_flags


@pytest.fixture
def values():
    values = flags.FlagValues()
    hortus_flags.define_flags(values)
    return values


def test_a_launch_command_is_read(values):
    values(
        [
            "train.py",
            "--experiment=resnet_imagenet",
            "--mode=train_and_eval",
            "--model_dir=/tmp/run",
            "--config_file=a.yaml",
            "--config_file=b.yaml",
            "--params_override=trainer.train_steps=1,task.model.num_classes=2",
            "--gin_params=a.b = 1",
            "--tpu=mine",
            "--tf_data_service=grpc://host:1",
            "--tpu_platform=x",
        ]
    )
    assert values.experiment == "resnet_imagenet"
    assert values.mode == "train_and_eval"
    assert values.config_file == ["a.yaml", "b.yaml"]
    assert values.params_override == "trainer.train_steps=1,task.model.num_classes=2"
    assert values.gin_params == ["a.b = 1"]
    assert values.tpu == "mine"


def test_without_flags_nothing_is_set(values):
    values(["train.py"])
    assert values.experiment is None
    assert values.config_file == []
    assert values.gin_file == []


def test_all_modes_are_accepted_and_no_others(values):
    for mode in hortus_flags.MODES:
        values(["train.py", f"--mode={mode}"])
        assert values.mode == mode
    with pytest.raises(flags.IllegalFlagValueError):
        values(["train.py", "--mode=tain"])
