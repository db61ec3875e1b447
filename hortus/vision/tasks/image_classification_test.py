import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from hortus import optimization
from hortus.cli import errors
from hortus.core import config_definitions as cfg
from hortus.core import distribute_utils, train_lib
from hortus.vision.configs import image_classification as configs
from hortus.vision.dataloaders.conftest import Host, make_example, make_image, write_records
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.tasks.image_classification import ImageClassificationTask


class LinearTask(ImageClassificationTask):
    """The task with a model that is made and compiled in no time."""

    def build_model(self):
        return keras.Sequential(
            [
                keras.layers.Input([*self.task_config.model.input_size]),
                keras.layers.Flatten(),
                keras.layers.Dense(self.task_config.model.num_classes),
            ]
        )


def write_images(folder, counts, first=0):
    """A sub-folder for each class of `counts`, with so many images."""
    number = first
    for name, count in counts.items():
        (folder / name).mkdir(parents=True)
        for i in range(count):
            encoded = tf.io.encode_png(make_image(number)).numpy()
            (folder / name / f"{i}.png").write_bytes(encoded)
            number += 1
    return folder


@pytest.fixture
def folders(tmp_path):
    write_images(tmp_path / "train", {"ant": 4, "bee": 3, "cat": 3})
    write_images(tmp_path / "val", {"bee": 2, "cat": 2}, first=100)
    return tmp_path


def make_config(folder, train=(), validation=(), num_classes=3, file_type="folder", **others):
    """A task on `folder`/train and `folder`/val, with changes."""
    data = {"file_type": file_type, "global_batch_size": 2, "seed": 1, "aug_crop": False}
    config = configs.ImageClassificationTask(
        {"model": {"num_classes": num_classes, "input_size": [8, 8, 3]}, **others}
    )
    ending = "" if file_type == "folder" else f".{file_type}"
    for name, split, changes in (
        ("train_data", "train", train),
        ("validation_data", "val", validation),
    ):
        path = str(folder / f"{split}{ending}")
        config.override({name: {"input_path": path, **data, **dict(changes)}})
    return config


def run(config, folder, steps=4, mode="train_and_eval", task_cls=LinearTask):
    """Trains; returns the task and the logs of the last evaluation."""
    optimizer = optimization.OptimizationConfig(
        {
            "optimizer": {"type": "sgd"},
            "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.01}},
        }
    )
    trainer = {"train_steps": steps, "steps_per_loop": 2, "summary_interval": 2}
    trainer |= {"validation_interval": steps, "checkpoint_interval": steps}
    params = cfg.ExperimentConfig(
        task=config, trainer=cfg.TrainerConfig(optimizer_config=optimizer, **trainer)
    )
    strategy = distribute_utils.get_distribution_strategy("one_device")
    task = task_cls(config, logging_dir=str(folder))
    _, logs = train_lib.run_experiment(
        strategy, task, mode, params, folder, enable_async_checkpointing=False
    )
    return task, logs


# ---- classes --------------------------------------------------------------------------------


def test_classes_of_training_number_those_of_validation(folders):
    config = make_config(folders)
    for order in (("train_data", "validation_data"), ("validation_data", "train_data")):
        task = LinearTask(config)
        found = {name: task.build_inputs(config.get(name)) for name in order}
        labels = [label for _, batch in found["validation_data"] for label in batch.numpy()]
        assert labels == [1, 1, 2, 2]
        assert task.class_names == ("ant", "bee", "cat")


def test_classes_that_training_does_not_know_are_an_error(folders):
    write_images(folders / "val", {"dog": 1}, first=200)
    config = make_config(folders)
    with pytest.raises(DataError, match="classes dog are not among those of the training data"):
        LinearTask(config).build_inputs(config.validation_data)


def test_names_of_classes_are_kept_in_the_runs_folder(folders):
    config, run_dir = make_config(folders), folders / "run"
    task = LinearTask(config, logging_dir=str(run_dir))
    task.build_inputs(config.train_data, Host(2, 0))
    assert not run_dir.exists()  # the run writes them when it has its weights
    run(config, run_dir)
    assert json.loads((run_dir / "class_names.json").read_text()) == ["ant", "bee", "cat"]
    # An evaluation without the training data still knows what the outputs mean.
    config.override({"train_data": {"input_path": ""}})
    task = LinearTask(config, logging_dir=str(run_dir))
    (_, labels), *_ = task.build_inputs(config.validation_data)
    assert labels.numpy().tolist() == [1, 1] and task.class_names == ("ant", "bee", "cat")


def test_a_run_goes_on_with_its_own_classes_only(folders):
    config, run_dir = make_config(folders), folders / "run"
    run(config, run_dir)
    (folders / "train" / "ant").rename(folders / "train" / "eel")
    with pytest.raises(DataError, match="classes eel are not among"):
        LinearTask(config, logging_dir=str(run_dir)).build_inputs(config.train_data)


def test_records_of_other_classes_are_an_error(folders):
    record = make_example(
        image__encoded=tf.io.encode_png(make_image(0)).numpy(), image__class__label=0
    )
    write_records(folders / "val.tfrecord", [record])
    about = {"class_names": ["x", "y", "z"], "examples_per_file": {"val.tfrecord": 1}}
    (folders / "hortus_dataset.json").write_text(json.dumps(about))
    path = str(folders / "val.tfrecord")
    config = make_config(folders, validation={"input_path": path, "file_type": "tfrecord"})
    task = LinearTask(config)
    task.build_inputs(config.train_data)
    with pytest.raises(DataError, match=r"\(x, y, z\) are not those that the model has learnt"):
        task.build_inputs(config.validation_data)


# ---- labels, losses, metrics ----------------------------------------------------------------


def test_soft_labels_count_as_their_largest_class():
    config = configs.ImageClassificationTask(
        {"model": {"num_classes": 3, "input_size": [1, 1, 3]}, "losses": {"soft_labels": True}}
    )
    task = LinearTask(config)
    labels = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], "float32")
    outputs = np.array([[2.0, 1.0, 0.0], [2.0, 1.0, 0.0]], "float32")
    metrics = task.build_metrics(training=True)
    task.process_metrics(metrics, keras.ops.array(labels), keras.ops.array(outputs))
    found = {metric.name: float(metric.result()) for metric in metrics}
    assert found == {"accuracy": 0.5, "top_5_accuracy": 1.0}
    log_p = outputs - np.log(np.exp(outputs).sum(axis=1, keepdims=True))
    expected = -(labels * log_p).sum(axis=1).mean()
    loss = task.build_losses(keras.ops.array(labels), keras.ops.array(outputs))
    np.testing.assert_allclose(float(loss), expected, rtol=1e-6)  # float32


@pytest.mark.parametrize("losses", [{}, {"one_hot": False}, {"soft_labels": True}])
@pytest.mark.parametrize("binary", [False, True])
def test_class_numbers_suit_every_loss(losses, binary):
    config = configs.ImageClassificationTask(
        {
            "model": {"num_classes": 3, "input_size": [1, 1, 3]},
            "losses": {**losses, "use_binary_cross_entropy": binary},
        }
    )
    task = LinearTask(config)
    model, metrics = task.build_model(), task.build_metrics(training=False)
    batch = (np.ones([2, 1, 1, 3], "float32"), np.array([0, 2], "int32"))
    logs = task.validation_step((batch[0], keras.ops.array(batch[1])), model, metrics)
    assert np.isfinite(float(logs["loss"]))
    assert logs["classes"].numpy().tolist() == [0, 2]
    # Both images are the same, so one of two classes at most can be right.
    assert float(metrics[0].result()) in (0.0, 0.5)


# ---- the whole way --------------------------------------------------------------------------

AUGMENTATIONS = {
    "strong": {
        "aug_type": {"type": "randaug", "randaug": {"num_layers": 1}},
        "random_erasing": {"probability": 1.0, "min_area": 0.3},
        "mixup_and_cutmix": {"label_smoothing": 0.0},
        "repeated_augment": 2,
    },
    "three_augment": {"three_augment": True, "color_jitter": 0.3},
    "autoaug": {"aug_type": {"type": "autoaug", "autoaug": {"augmentation_name": "simple"}}},
}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmentations_reach_the_model(folders, name):
    plain = {"aug_rand_hflip": False, "shuffle_buffer_size": 1, "global_batch_size": 4}
    soft = {"losses": {"soft_labels": name == "strong"}}

    def first(**changes):
        config = make_config(folders, train={**plain, **changes}, **soft)
        return next(iter(LinearTask(config).build_inputs(config.train_data)))

    images, labels = (value.numpy() for value in first(**AUGMENTATIONS[name]))
    untouched, _ = (value.numpy() for value in first())
    assert images.shape == untouched.shape and np.all(np.isfinite(images))
    assert not np.array_equal(images, untouched)
    if name == "strong":
        assert labels.shape == (4, 3)
        np.testing.assert_allclose(labels.sum(axis=1), 1.0, atol=1e-6)  # float32
        # Copies of an image are neighbours: places 0 and 1 are of one class, and 2 and 3; each is
        # mixed with the mirrored place, so that all have two classes at most.
        assert np.all((labels > 0).sum(axis=1) <= 2)
        config = make_config(folders, train={**plain, "repeated_augment": 2, "aug_crop": True})
        copies, classes = next(iter(LinearTask(config).build_inputs(config.train_data)))
        assert classes[0] == classes[1] and classes[2] == classes[3]
        assert not np.array_equal(copies[0], copies[1])
    else:
        assert labels.shape == (4,)


def test_mixed_images_train(folders):
    train = {"mixup_and_cutmix": {}, "repeated_augment": 2}
    config = make_config(folders, train=train, losses={"soft_labels": True})
    _, logs = run(config, folders / "run")
    assert logs["accuracy"] in (0.0, 0.25, 0.5, 0.75, 1.0)  # four images, none counted twice
    assert logs["top_5_accuracy"] == 1.0
    lines = (folders / "run" / "metrics.jsonl").read_text().splitlines()
    train = [json.loads(line) for line in lines if '"train"' in line]
    assert train and all(0 <= line["values"]["accuracy"] <= 1 for line in train)


def test_several_classes_per_image_from_a_csv_file(folders):
    for split, count in (("train", 4), ("val", 2)):
        paths = sorted((folders / split / "bee").glob("*.png"))[:count]
        rows = [f"{path},{text}" for path, text in zip(paths, ("a|b", "", "b"), strict=False)]
        (folders / f"{split}.csv").write_text("\n".join(rows) + "\n")
    several = {"is_multilabel": True}
    config = make_config(folders, several, several, num_classes=2, file_type="csv")
    labels = next(iter(LinearTask(config).build_inputs(config.validation_data)))[1]
    np.testing.assert_array_equal(labels, [[1, 1], [0, 0]])
    task, logs = run(config, folders / "run", steps=2)
    assert task.class_names == ("a", "b")
    assert 0 <= logs["globalPR-AUC"] <= 1 and 0 <= logs["meanPR-AUC"] <= 1
    assert np.isfinite(logs["validation_loss"])


# ---- broken data ----------------------------------------------------------------------------


def shown(call):
    """The exit code of the command, were `call` its work."""
    with errors.reported() as outcome:
        call()
    return outcome.code


def test_a_broken_image_ends_a_run_with_its_name(folders, capsys):
    path = folders / "train" / "bee" / "1.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    assert shown(lambda: run(make_config(folders), folders / "run", steps=20)) == 2
    message = capsys.readouterr().err
    assert f"error: train_data: {path}: " in message
    assert "Traceback" not in message


def test_a_damaged_record_ends_a_run_with_its_place(folders, capsys):
    records = [
        make_example(
            image__encoded=tf.io.encode_png(make_image(i)).numpy(), image__class__label=i % 3
        )
        for i in range(6)
    ]
    write_records(folders / "val.tfrecord", records)
    write_records(folders / "train.tfrecord", records)
    damaged = bytearray((folders / "train.tfrecord").read_bytes())
    damaged[-100] ^= 0xFF
    (folders / "train.tfrecord").write_bytes(damaged)
    config = make_config(folders, file_type="tfrecord")
    assert shown(lambda: run(config, folders / "run", steps=20)) == 2
    message = capsys.readouterr().err
    assert f"error: train_data: {folders / 'train.tfrecord'}, record 5: " in message


def test_broken_images_can_be_left_out_and_are_counted(folders, capsys):
    path = folders / "train" / "bee" / "1.png"
    path.write_bytes(b"broken")
    config = make_config(folders, train={"skip_bad_records": True})
    task, _ = run(config, folders / "run", steps=10)
    (note,) = task.notes()
    assert note.startswith("train_data: 1 example was left out:")
    assert str(path) in note
    assert note in capsys.readouterr().err


def test_other_errors_are_not_blamed_on_the_data(folders):
    config = make_config(folders)
    task = LinearTask(config)
    task.build_inputs(config.train_data)
    assert task.input_error(ValueError("something else")) is None
    assert task.input_error(tf.errors.InvalidArgumentError(None, None, "shapes")) is None
