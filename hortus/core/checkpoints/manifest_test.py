import json

import numpy as np
import pytest

from hortus import hyperparams
from hortus.core.checkpoints import errors, manifest


def example():
    return manifest.Manifest(
        step=7,
        engine="jax",
        keras="3.15",
        created="2026-01-01T00:00:00+00:00",
        items={"model": "layer"},
        variables={"model/kernel": {"shape": [2], "dtype": "float32", "kind": "weight"}},
        state={"data": {"epoch": 3, "loss": 0.1, "name": "ä", "list": [1, None]}},
        files={"weights.safetensors": {"bytes": 3, "crc32": "00000001"}},
        config={"trainer": {"train_steps": 10}},
    )


def write(folder, content):
    (folder / manifest.NAME).write_bytes(content)


def test_it_survives(tmp_path):
    write(tmp_path, example().to_bytes())
    assert manifest.Manifest.read(str(tmp_path)) == example()


def test_it_says_what_it_is(tmp_path):
    content = json.loads(example().to_bytes())
    assert (content["format"], content["format_version"]) == ("hortus-checkpoint", 1)


def test_every_edit_is_found(tmp_path):
    text = example().to_bytes().decode()
    for old, new in [('"step": 7', '"step": 8'), ("[2]", "[3]"), ("0.1", "0.2"), ("10", "11")]:
        assert old in text
        write(tmp_path, text.replace(old, new).encode())
        with pytest.raises(errors.CorruptCheckpointError, match=r"manifest\.json was changed"):
            manifest.Manifest.read(str(tmp_path))


def test_every_truncation_is_found(tmp_path):
    content = example().to_bytes()
    for length in range(len(content) - 1):  # the last byte is the end of the line
        write(tmp_path, content[:length])
        with pytest.raises(errors.CorruptCheckpointError, match=r"manifest\.json is truncated"):
            manifest.Manifest.read(str(tmp_path))


def with_checksum(content):
    content = {key: value for key, value in content.items() if key != "crc32"}
    return json.dumps({**content, "crc32": manifest._checksum(content)}).encode()


FILE = {"bytes": 3, "crc32": "00000001"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", "7"),
        ("step", -1),
        ("step", True),
        ("step", 7.0),
        ("engine", 1),
        ("items", []),
        ("items", {"model": 1}),
        ("variables", {"model/kernel": {"shape": [2], "dtype": "float32"}}),
        ("variables", {"model/kernel": {"shape": 2, "dtype": "float32", "kind": "weight"}}),
        ("variables", {"model/kernel": {"shape": ["2"], "dtype": "float32", "kind": "weight"}}),
        ("aliases", {"a": ["b"]}),
        ("modules", {"backbone": "kernel"}),
        ("state", [1]),
        ("hosts", None),
        ("files", {"weights.safetensors": 3}),
        ("files", {"weights.safetensors": {**FILE, "crc32": "xyz"}}),
        ("files", {"weights.safetensors": {**FILE, "bytes": "3"}}),
        ("files", {"../../weights.safetensors": FILE}),
        ("files", {"/etc/passwd": FILE}),
        ("format_version", "1"),
        ("format_version", None),
    ],
)
def test_a_field_of_another_type_is_damage(tmp_path, name, value):
    write(tmp_path, with_checksum({**json.loads(example().to_bytes()), name: value}))
    with pytest.raises(errors.CorruptCheckpointError, match=rf"manifest\.json: {name} is"):
        manifest.Manifest.read(str(tmp_path))


def test_what_is_missing_takes_its_default_but_for_the_step(tmp_path):
    content = json.loads(example().to_bytes())
    write(tmp_path, with_checksum({key: content[key] for key in ("format", "step")}))
    assert manifest.Manifest.read(str(tmp_path)) == manifest.Manifest(7)
    del content["step"]
    write(tmp_path, with_checksum(content))
    with pytest.raises(errors.CorruptCheckpointError, match="has no step"):
        manifest.Manifest.read(str(tmp_path))


@pytest.mark.parametrize("content", [b"[]", b"7", b'"text"', b"null", b"[" * 100_000, b"\xff"])
def test_what_is_no_manifest_is_damage(tmp_path, content):
    write(tmp_path, content)
    with pytest.raises(errors.CorruptCheckpointError, match="no manifest of a checkpoint"):
        manifest.Manifest.read(str(tmp_path))


def test_a_missing_one_is_told(tmp_path):
    with pytest.raises(errors.CorruptCheckpointError, match="is missing"):
        manifest.Manifest.read(str(tmp_path))


def test_one_of_a_newer_version_is_not_called_damaged(tmp_path):
    text = example().to_bytes().decode().replace('"format_version": 1', '"format_version": 2')
    write(tmp_path, text.encode())
    with pytest.raises(errors.CheckpointError, match="newer hortus") as caught:
        manifest.Manifest.read(str(tmp_path))
    assert not isinstance(caught.value, errors.CorruptCheckpointError)


def test_as_json_takes_what_states_are_made_of():
    config = hyperparams.Config({"a": {"b": 1}})
    state = {
        "n": np.int64(3),
        "x": np.float32(0.5),
        "list": (1, [2]),
        "a": np.arange(2),
        "c": config,
    }
    assert manifest.as_json(state, "data") == {
        "n": 3,
        "x": 0.5,
        "list": [1, [2]],
        "a": [0, 1],
        "c": {"a": {"b": 1}},
    }


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": [object()]}, r"data\.a\[0\] is a object"),
        ({"a": {1: 2}}, r"data\.a has the key 1"),
    ],
)
def test_as_json_says_where_the_trouble_is(state, message):
    with pytest.raises(errors.CheckpointError, match=message):
        manifest.as_json(state, "data")
