import dataclasses
import json

import pytest

from hortus import hyperparams, testing
from hortus.core import config_definitions as cfg

CLASSES = (
    cfg.DataConfig,
    cfg.RuntimeConfig,
    cfg.TrainerConfig,
    cfg.TaskConfig,
    cfg.ExperimentConfig,
    cfg.DifferentialPrivacyConfig,
)


@pytest.mark.parametrize("cls", CLASSES)
def test_fields_and_defaults_equal_the_reference(cls):
    reference = json.loads((testing.reference_dir() / "config_fields.json").read_text())
    known = {
        name.rsplit(".", 1)[1]: entry["fields"]
        for name, entry in reference.items()
        if ".vision." not in name
    }
    config = cls()
    for name, field in known[cls.__name__].items():
        value = getattr(config, name)
        if isinstance(value, hyperparams.Config):
            assert field["default"] == {"__config__": type(value).__name__}, name
        else:
            assert value == field["default"], name
            assert type(value) is type(field["default"]), name


@pytest.mark.parametrize("cls", [*CLASSES, cfg.EarlyStoppingConfig])
def test_every_field_is_described(cls):
    own = [field.name for field in dataclasses.fields(cls)]
    assert own
    for name in own:
        assert hyperparams.describe_field(cls, name), f"{cls.__name__}.{name}"


def test_the_defaults_are_valid():
    cfg.ExperimentConfig().validate()


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("runtime.engine=torch", "runtime.engine.*must be one of 'tensorflow', 'jax'; got 'torch'"),
        ("runtime.distribution_strategy=mirror", "runtime.distribution_strategy.*'mirrored'"),
        ("runtime.mixed_precision_dtype=fp16", "runtime.mixed_precision_dtype.*'float16'"),
        ("runtime.loss_scale=static", "runtime.loss_scale.*'dynamic' or a number"),
        ("runtime.num_gpus=-2", "runtime.num_gpus"),
        ("runtime.virtual_cpu_devices=-1", "runtime.virtual_cpu_devices"),
        ("trainer.best_checkpoint_metric_comp=more", "best_checkpoint_metric_comp.*'higher'"),
        ("trainer.gradient_accumulation_steps=0", "gradient_accumulation_steps.*1 or more, got 0"),
        ("trainer.train_steps=-1", "trainer.train_steps"),
        ("trainer.fast_dev_run=-1", "trainer.fast_dev_run"),
        ("trainer.max_time=soon", "trainer.max_time.*hours:minutes:seconds, got 'soon'"),
        ("trainer.max_time=0", "trainer.max_time"),
        ("trainer.early_stopping.patience=-1", "trainer.early_stopping.patience"),
        ("trainer.early_stopping.metric_comp=up", "early_stopping.metric_comp.*'lower'"),
        ("task.train_data.global_batch_size=-8", "task.train_data.global_batch_size"),
        (
            "task.train_data.enable_shared_tf_data_service_between_parallel_trainers=true",
            "needs a trainer_id",
        ),
    ],
)
def test_validate_finds_values_that_cannot_work(override, complaint):
    with pytest.raises(hyperparams.ConfigError, match=complaint):
        override_and_validate(override)


def override_and_validate(override):
    """The first refuses what is out of bounds, the second what contradicts other values."""
    config = cfg.ExperimentConfig()
    config.override(override)
    config.validate()


@pytest.mark.parametrize(
    "override",
    [
        "runtime.engine=jax",
        "runtime.distribution_strategy=Mirrored",
        "runtime.loss_scale=dynamic",
        "runtime.loss_scale=128",
        "trainer.fast_dev_run=true",
        "trainer.fast_dev_run=5",
        "trainer.early_stopping=null",
        "task.train_data.input_path=a*.tfrecord",
        "task.train_data.input_path=[a.tfrecord, b.tfrecord]",
        "task.train_data.input_path={coco: a.tfrecord, mine: b.tfrecord}",
    ],
)
def test_validate_lets_good_values_pass(override):
    config = cfg.ExperimentConfig()
    config.override(override)
    config.validate()


@pytest.mark.parametrize("name", ["best_checkpoint_export_subdir", "validation_summary_subdir"])
@pytest.mark.parametrize("folder", ["/tmp/elsewhere", "../elsewhere", "a/../../elsewhere"])
def test_sub_folders_stay_in_the_run_unless_allowed(name, folder):
    config = cfg.TrainerConfig(**{name: folder})
    with pytest.raises(hyperparams.ConfigError, match=f"{name}.*inside of the model directory"):
        config.validate()
    config.allow_subdirs_outside = True
    config.validate()
    cfg.TrainerConfig(**{name: "a/../b"}).validate()


@pytest.mark.parametrize(
    ("max_time", "seconds"),
    [(None, None), (90, 90), (1.5, 1.5), ("45", 45), ("2:30", 150), ("01:02:03", 3723)],
)
def test_max_seconds(max_time, seconds):
    assert cfg.TrainerConfig(max_time=max_time).max_seconds == seconds


def test_setting_a_field_without_effect_warns_and_says_why():
    config = cfg.RuntimeConfig()
    with pytest.warns(hyperparams.ConfigWarning, match="num_cores_per_replica.*one device"):
        config.override({"num_cores_per_replica": 4})


def test_a_task_of_ones_own_in_the_style_of_the_guides():
    @dataclasses.dataclass
    class Model(hyperparams.Config):
        num_classes: int = 0

    @dataclasses.dataclass
    class Data(cfg.DataConfig):
        dtype: str = "float32"

    @dataclasses.dataclass
    class Task(cfg.TaskConfig):
        model: Model = Model()
        train_data: Data = Data(is_training=True)
        validation_data: Data = Data(is_training=False)

    experiment = cfg.ExperimentConfig(task=Task(model=Model(num_classes=5)))
    experiment.override({"task": {"train_data": {"dtype": "bfloat16"}}})
    assert experiment.task.model.num_classes == 5
    assert experiment.task.train_data.is_training is True
    assert experiment.task.train_data.dtype == "bfloat16"
    assert Task().train_data.dtype == "float32"
