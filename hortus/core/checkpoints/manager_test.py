import dataclasses
import os
import threading
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from hortus import testing
from hortus.core.checkpoints import atomic_folder, errors, store
from hortus.core.checkpoints.checkpoint import Checkpoint
from hortus.core.checkpoints.manager import CheckpointManager
from hortus.engine.tensorflow.feed import DatasetFeed
from hortus.engine.tensorflow.startable import StartableDataset


def test_on_jax():
    testing.run_under_engine("jax", __file__)


class Position:
    """A host's own place in the data."""

    def __init__(self, value=""):
        self.value = value

    def save_files(self, folder):
        with open(os.path.join(folder, "position"), "w") as file:
            file.write(self.value)

    def load_files(self, folder):
        with open(os.path.join(folder, "position")) as file:
            self.value = file.read()


@pytest.fixture
def variable():
    return keras.Variable(np.zeros(4, "float32"))


@pytest.fixture
def checkpoint(variable):
    return Checkpoint(x=variable)


def steps(manager):
    return [int(path.rpartition("-")[2]) for path in manager.checkpoints]


def save(manager, variable, *numbers):
    for number in numbers:
        variable.assign(np.full(4, float(number)))
        manager.save(number)
    manager.wait()


def damage(path, file=store.WEIGHTS):
    with open(os.path.join(path, file), "r+b") as opened:
        opened.seek(-1, os.SEEK_END)
        byte = opened.read(1)
        opened.seek(-1, os.SEEK_END)
        opened.write(bytes([byte[0] ^ 1]))


def test_the_newest_is_restored(tmp_path, checkpoint, variable):
    manager = CheckpointManager(checkpoint, tmp_path)
    save(manager, variable, 9, 10, 100)
    assert steps(manager) == [9, 10, 100]
    assert manager.latest_checkpoint == str(tmp_path / "ckpt-100")
    variable.assign(np.zeros(4))
    assert CheckpointManager(checkpoint, tmp_path).restore() == 100
    assert variable.numpy().tolist() == [100.0] * 4
    assert manager.restore(tmp_path / "ckpt-9") == 9
    assert variable.numpy().tolist() == [9.0] * 4


def test_one_of_another_step_than_its_name_says_is_passed_over_and_written_anew(
    tmp_path, checkpoint, variable
):
    manager = CheckpointManager(checkpoint, tmp_path)
    save(manager, variable, 4, 8)
    os.rename(tmp_path / "ckpt-8", tmp_path / "ckpt-12")
    again = CheckpointManager(checkpoint, tmp_path)
    told = r"misnamed: .*ckpt-12 has the name of step 12, but its content is of step 8"
    with pytest.warns(errors.CheckpointWarning, match=told):
        assert steps(again) == [4]
    with pytest.warns(errors.CheckpointWarning, match=rf"{told}.* Restored .*ckpt-4 \(step 4\)"):
        assert again.restore() == 4
    # A run that comes to step 12 keeps its result.
    save(again, variable, 12)
    assert steps(again) == [4, 12]
    assert CheckpointManager(checkpoint, tmp_path).restore() == 12
    assert variable.numpy().tolist() == [12.0] * 4


def test_with_misnamed_ones_alone_a_run_does_not_start_over(tmp_path, checkpoint, variable):
    save(CheckpointManager(checkpoint, tmp_path), variable, 8)
    os.rename(tmp_path / "ckpt-8", tmp_path / "ckpt-12")
    manager = CheckpointManager(checkpoint, tmp_path)
    with pytest.raises(errors.CorruptCheckpointError, match=r"misnamed.*\s.*content is of step 8"):
        manager.restore()
    assert manager.restore(tmp_path / "ckpt-12") == 8  # named by hand, it is what it is


@pytest.mark.parametrize("change", [{"files": 7}, {"step": None}, {"variables": {"x": 1}}])
def test_a_manifest_without_meaning_leads_to_the_older_checkpoint(
    tmp_path, checkpoint, variable, change
):
    manager = CheckpointManager(checkpoint, tmp_path)
    save(manager, variable, 1, 2)
    read = store.StoredCheckpoint.open(str(tmp_path / "ckpt-2")).manifest
    changed = dataclasses.replace(read, **change).to_bytes()  # its checksum is right
    (tmp_path / "ckpt-2" / "manifest.json").write_bytes(changed)
    with pytest.warns(errors.CheckpointWarning, match=r"damaged: .*manifest\.json: \w+ is not"):
        assert CheckpointManager(checkpoint, tmp_path).restore() == 1


def test_without_a_checkpoint_there_is_nothing_to_restore(tmp_path, checkpoint):
    manager = CheckpointManager(checkpoint, tmp_path / "new")
    assert manager.restore() is None
    assert manager.latest_checkpoint is None
    assert manager.checkpoints == []
    assert not (tmp_path / "new").exists()  # neither asking nor restoring writes


def test_only_the_newest_are_kept(tmp_path, checkpoint, variable):
    manager = CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    save(manager, variable, 1, 2, 3, 4)
    assert sorted(os.listdir(tmp_path)) == ["ckpt-3", "ckpt-4"]


@pytest.mark.parametrize("number", [None, 0])
def test_all_are_kept_on_request(tmp_path, checkpoint, variable, number):
    manager = CheckpointManager(checkpoint, tmp_path, max_to_keep=number)
    save(manager, variable, *range(7))
    assert steps(manager) == list(range(7))


def test_an_old_one_goes_only_when_the_new_one_is_there(
    tmp_path, checkpoint, variable, monkeypatch
):
    manager = CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
    save(manager, variable, 1)
    remove, seen = atomic_folder.remove, []

    def watched(path):
        seen.append((os.path.basename(path), steps(CheckpointManager(checkpoint, tmp_path))))
        remove(path)

    monkeypatch.setattr(atomic_folder, "remove", watched)
    save(manager, variable, 2)
    assert seen == [("ckpt-1", [1, 2])]


def test_what_was_just_written_is_kept_though_its_step_is_lower(tmp_path, checkpoint, variable):
    save(CheckpointManager(checkpoint, tmp_path), variable, 10, 20, 30)
    manager = CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    manager.restore(tmp_path / "ckpt-10")
    save(manager, variable, 15)
    assert steps(manager) == [15, 30]


def test_saving_waits_for_the_copy_and_not_for_the_disk(
    tmp_path, checkpoint, variable, monkeypatch
):
    gate, write = threading.Event(), store.write

    def slow(*arguments):
        assert gate.wait(30)
        write(*arguments)

    monkeypatch.setattr(store, "write", slow)
    manager = CheckpointManager(checkpoint, tmp_path)
    variable.assign(np.ones(4))
    path = manager.save(1)
    assert not os.path.exists(path)
    assert manager.checkpoints == []
    variable.assign(np.zeros(4))  # training goes on
    gate.set()
    manager.wait()
    assert os.path.isdir(path)
    manager.restore()
    assert variable.numpy().tolist() == [1.0] * 4


def test_synchronously_it_is_there_at_once(tmp_path, checkpoint):
    manager = CheckpointManager(checkpoint, tmp_path, asynchronous=False)
    assert os.path.isdir(manager.save(1))


def test_closing_finishes_the_write_and_the_thread(tmp_path, checkpoint):
    before = set(threading.enumerate())
    with CheckpointManager(checkpoint, tmp_path) as manager:
        path = manager.save(1)
        assert set(threading.enumerate()) - before
    assert os.path.isdir(path)
    assert not set(threading.enumerate()) - before


def test_an_existing_step_is_skipped_unless_forced(tmp_path, checkpoint, variable):
    manager = CheckpointManager(checkpoint, tmp_path)
    save(manager, variable, 1)
    for other in (manager, CheckpointManager(checkpoint, tmp_path)):
        variable.assign(np.full(4, 5.0))
        assert other.save(1) == str(tmp_path / "ckpt-1")
        other.restore()
        assert variable.numpy().tolist() == [1.0] * 4
    variable.assign(np.full(4, 5.0))
    manager.save(1, force=True)
    variable.assign(np.zeros(4))
    manager.restore()
    assert variable.numpy().tolist() == [5.0] * 4
    assert os.listdir(tmp_path) == ["ckpt-1"]


@pytest.mark.parametrize("what", ["edited", "truncated", "no manifest", "edited manifest"])
def test_a_damaged_one_is_passed_over_loudly_and_written_anew(tmp_path, checkpoint, variable, what):
    save(CheckpointManager(checkpoint, tmp_path), variable, 1, 2, 3)
    newest = tmp_path / "ckpt-3"
    if what == "edited":
        damage(newest)
    elif what == "truncated":
        os.truncate(newest / store.WEIGHTS, 50)
    elif what == "no manifest":
        os.remove(newest / "manifest.json")
    else:
        text = (newest / "manifest.json").read_text()
        (newest / "manifest.json").write_text(text.replace('"step": 3', '"step": 4'))
    manager = CheckpointManager(checkpoint, tmp_path)
    with pytest.warns(errors.CheckpointWarning, match=r"damaged.*ckpt-3.*Restored.*ckpt-2"):
        assert manager.restore() == 2
    assert variable.numpy().tolist() == [2.0] * 4
    assert steps(manager) == [1, 2]
    save(manager, variable, 3)
    assert steps(manager) == [1, 2, 3]
    assert CheckpointManager(checkpoint, tmp_path).restore() == 3


def test_a_damaged_one_that_is_named_is_an_error(tmp_path, checkpoint, variable):
    manager = CheckpointManager(checkpoint, tmp_path)
    save(manager, variable, 1, 2)
    damage(tmp_path / "ckpt-2")
    with pytest.raises(errors.CorruptCheckpointError, match=r"ckpt-2/weights\.safetensors"):
        manager.restore(tmp_path / "ckpt-2")


def test_nothing_but_damaged_ones_is_an_error(tmp_path, checkpoint, variable):
    manager = CheckpointManager(checkpoint, tmp_path)
    save(manager, variable, 1, 2)
    for step in (1, 2):
        damage(tmp_path / f"ckpt-{step}")
    with pytest.raises(errors.CorruptCheckpointError, match="every checkpoint in"):
        manager.restore()


def test_a_model_that_does_not_fit_is_an_error_and_no_damage(tmp_path, checkpoint, variable):
    save(CheckpointManager(checkpoint, tmp_path), variable, 1, 2)
    other = CheckpointManager(Checkpoint(x=keras.Variable(np.zeros(5))), tmp_path)
    with pytest.raises(errors.CheckpointError, match="does not fit"):
        other.restore()
    assert steps(other) == [1, 2]


def test_damaged_old_ones_go_when_their_time_comes(tmp_path, checkpoint, variable):
    save(CheckpointManager(checkpoint, tmp_path), variable, 1, 2)
    os.truncate(tmp_path / "ckpt-1" / store.WEIGHTS, 10)
    save(CheckpointManager(checkpoint, tmp_path, max_to_keep=2), variable, 3, 4)
    assert sorted(os.listdir(tmp_path)) == ["ckpt-3", "ckpt-4"]


def test_what_fails_in_the_background_is_raised_by_the_next_call(
    tmp_path, checkpoint, variable, monkeypatch
):
    manager = CheckpointManager(checkpoint, tmp_path)
    save(manager, variable, 1)

    def failing(*arguments):
        raise RuntimeError("the disk is on fire")

    for call in (manager.wait, manager.restore, lambda: manager.save(3), manager.close):
        with monkeypatch.context() as patch:
            patch.setattr(store, "write", failing)
            manager.save(2)
            with pytest.raises(RuntimeError, match="on fire"):
                call()
        manager.wait()  # raised once
    assert os.listdir(tmp_path) == ["ckpt-1"]
    save(manager, variable, 2)  # the step that failed is not taken for saved
    assert steps(manager) == [1, 2]


def test_leftovers_of_a_killed_writer_are_ignored_and_cleaned_up(tmp_path, checkpoint, variable):
    process = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(process, 0)
    own = os.path.basename(atomic_folder.temporary(str(tmp_path / "ckpt-5")))
    left = tmp_path / own.replace(f"@{os.getpid()}", f"@{process}")
    left.mkdir()
    (left / store.WEIGHTS).write_bytes(b"half")
    reader = CheckpointManager(checkpoint, tmp_path)
    assert reader.restore() is None
    assert left.exists()  # a reader cleans nothing: the writer may be on another host
    save(CheckpointManager(checkpoint, tmp_path), variable, 1)
    assert os.listdir(tmp_path) == ["ckpt-1"]


def hosts(tmp_path, count, value="", **kwargs):
    variable = keras.Variable(np.zeros(4, "float32"))
    managers, positions = [], [Position(f"{value}{i}") for i in range(count)]
    for index in range(count):
        checkpoint = Checkpoint(x=variable, data=positions[index])
        managers.append(
            CheckpointManager(
                checkpoint,
                tmp_path,
                is_chief=index == 0,
                host_index=index,
                host_count=count,
                **kwargs,
            )
        )
    return managers, positions, variable


def test_every_host_has_its_own_files_in_one_checkpoint(tmp_path):
    managers, positions, variable = hosts(tmp_path, 3, "at ")
    variable.assign(np.ones(4))
    for manager in managers:
        path = manager.save(1)
    for manager in managers:
        manager.wait()
    assert os.listdir(tmp_path) == ["ckpt-1"]
    assert sorted(os.listdir(path)) == [
        "host-00000",
        "host-00001",
        "host-00002",
        "manifest.json",
        "weights.safetensors",
    ]
    managers, positions, variable = hosts(tmp_path, 3)
    assert [manager.restore() for manager in managers] == [1, 1, 1]
    assert [position.value for position in positions] == ["at 0", "at 1", "at 2"]
    assert variable.numpy().tolist() == [1.0] * 4


def test_the_commit_waits_for_the_files_of_all_hosts(tmp_path):
    (chief, other), _, _ = hosts(tmp_path, 2)
    path = chief.save(1)
    time.sleep(0.3)
    assert not os.path.exists(path)
    other.save(1)
    chief.wait()
    assert os.path.isdir(path)


def test_a_host_that_does_not_deliver_is_named(tmp_path):
    (chief, *_), _, _ = hosts(tmp_path, 3, host_timeout=0.2)
    chief.save(1)
    with pytest.raises(errors.CheckpointError, match="no files of host 1, 2"):
        chief.wait()
    assert os.listdir(tmp_path) == []


def test_files_that_a_host_left_before_are_not_taken(tmp_path):
    (_, other), positions, _ = hosts(tmp_path, 2, "old ")
    other.save(1)
    other.wait()  # and then all were killed
    (chief, other), positions, _ = hosts(tmp_path, 2, "new ")
    other.save(1)
    chief.save(1)
    chief.wait()
    assert chief.restore() == 1
    assert other.restore() == 1
    assert positions[1].value == "new 1"


def test_hosts_without_files_of_their_own_write_nothing(tmp_path, checkpoint):
    chief = CheckpointManager(checkpoint, tmp_path, host_count=2)
    other = CheckpointManager(checkpoint, tmp_path, is_chief=False, host_index=1, host_count=2)
    other.save(1)
    other.wait()
    assert os.listdir(tmp_path) == []
    chief.save(1)
    chief.wait()
    assert other.restore() == 1


def test_another_number_of_hosts_is_warned_about(tmp_path):
    (chief, other), _, _ = hosts(tmp_path, 2, "at ")
    other.save(1)
    chief.save(1)
    chief.wait()
    (alone,), (position,), _ = hosts(tmp_path, 1, "unchanged ")
    with pytest.warns(errors.CheckpointWarning, match="written by 2 hosts and is read by 1"):
        assert alone.restore() == 1
    assert position.value == "unchanged 0"


class Numbers:
    """What a host reads: numbers, from where it was told to begin."""

    def __init__(self, host):
        self.started = []
        self.dataset = StartableDataset(
            tf.data.Dataset.range(10), self.restart, lambda _: {"left_out": {"": host}}
        )
        self.feed = DatasetFeed(self.dataset)

    def restart(self, position):
        self.started.append(position)
        return tf.data.Dataset.range(position["batches"], 10)


def test_each_host_goes_on_from_its_own_position(tmp_path, variable):
    def make(host, hosts):
        numbers = Numbers(host)
        manager = CheckpointManager(
            Checkpoint(x=variable, data=numbers.feed),
            tmp_path,
            asynchronous=False,
            is_chief=host == 0,
            host_index=host,
            host_count=hosts,
        )
        return numbers, manager

    for host in (1, 0):  # the chief collects what the others have written
        numbers, manager = make(host, 2)
        assert [int(next(numbers.feed)) for _ in range(3)] == [0, 1, 2]
        manager.save(6)
    read = store.StoredCheckpoint.open(str(tmp_path / "ckpt-6")).manifest
    assert read.state == {"data": {"left_out": {"": 0}, "batches": 3}}
    for host in (0, 1):
        numbers, manager = make(host, 2)
        assert manager.restore() == 6
        assert int(next(numbers.feed)) == 3
        assert numbers.started == [{"left_out": {"": host}, "batches": 3}]
    numbers, manager = make(0, 1)
    with pytest.warns(errors.CheckpointWarning, match="2 hosts .* only what they had in common"):
        manager.restore()
    assert int(next(numbers.feed)) == 3
    assert numbers.started == [{"batches": 3}]
