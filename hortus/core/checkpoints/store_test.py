import os

import numpy as np
import pytest

from hortus.core.checkpoints import atomic_folder, errors, store
from hortus.core.checkpoints.manifest import Manifest
from hortus.core.checkpoints.store import StoredCheckpoint


def save(directory, step, value=0.0, prefix="ckpt"):
    path = os.path.join(directory, store.folder_name(step, prefix))
    folder = atomic_folder.begin(path)
    os.makedirs(os.path.join(folder, "host-00000", "data"))
    with open(os.path.join(folder, "host-00000", "data", "position"), "w") as file:
        file.write("12")
    entry = {"shape": [2], "dtype": "float64", "kind": "weight"}
    store.write(folder, Manifest(step, variables={"x": entry}), {"x": np.full(2, value)})
    atomic_folder.commit(folder, path)
    return path


def test_what_is_written_is_read(tmp_path):
    stored = StoredCheckpoint.open(save(str(tmp_path), 3, 1.5))
    assert stored.manifest.step == 3
    assert stored.tensors()["x"].tolist() == [1.5, 1.5]
    assert set(stored.manifest.files) == {store.WEIGHTS, "host-00000/data/position"}
    stored.check_files("host-00000/")


@pytest.mark.parametrize("file", [store.WEIGHTS, "manifest.json", "host-00000/data/position"])
def test_a_truncated_or_missing_file_is_named_with_advice(tmp_path, file):
    path = save(str(tmp_path), 3)
    full = os.path.join(path, file)
    os.truncate(full, os.path.getsize(full) - 2)
    with pytest.raises(errors.CorruptCheckpointError) as caught:
        StoredCheckpoint.open(path)
    assert full in str(caught.value)
    assert f"Delete the folder {path} and restore from an older checkpoint" in str(caught.value)
    os.remove(full)
    with pytest.raises(errors.CorruptCheckpointError, match=file):
        StoredCheckpoint.open(path)


def test_an_edit_that_keeps_the_length_is_found(tmp_path):
    path = save(str(tmp_path), 3)
    for file in (store.WEIGHTS, "host-00000/data/position"):
        with open(os.path.join(path, file), "r+b") as opened:
            opened.seek(-1, os.SEEK_END)
            opened.write(b"?")
    stored = StoredCheckpoint.open(path)
    with pytest.raises(errors.CorruptCheckpointError, match=r"weights\.safetensors was changed"):
        stored.tensors()
    with pytest.raises(errors.CorruptCheckpointError, match="position was changed"):
        stored.check_files("host-00000/")


def test_finding_is_by_step_and_passes_over_everything_else(tmp_path):
    for step in (100, 20, 3):
        save(str(tmp_path), step)
    save(str(tmp_path), 5, prefix="best_ckpt")
    atomic_folder.begin(str(tmp_path / "ckpt-200"))
    (tmp_path / "ckpt-300").write_text("a file")
    (tmp_path / "ckpt-x").mkdir()
    assert [step for step, _ in store.find(str(tmp_path))] == [3, 20, 100]
    assert [step for step, _ in store.find(str(tmp_path), "best_ckpt")] == [5]
    assert store.find(str(tmp_path / "nowhere")) == []


def test_what_is_being_replaced_is_found_until_the_new_is_there(tmp_path):
    path = save(str(tmp_path), 3, 1.0)
    os.rename(path, atomic_folder.replaced(path))
    assert store.find(str(tmp_path)) == [(3, atomic_folder.replaced(path))]
    save(str(tmp_path), 3, 2.0)
    assert store.find(str(tmp_path)) == [(3, path)]


def test_damaged_ones_are_not_valid(tmp_path):
    paths = [save(str(tmp_path), step) for step in (1, 2, 3)]
    os.truncate(os.path.join(paths[1], store.WEIGHTS), 10)
    assert store.find_valid(str(tmp_path)) == [(1, paths[0]), (3, paths[2])]
    assert store.find_valid(str(tmp_path), broken=[paths[2]]) == [(1, paths[0])]
