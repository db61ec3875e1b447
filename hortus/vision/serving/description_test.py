"""The description of an export, whole and damaged."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus import hyperparams
from hortus.core import registry
from hortus.testing import damage, fuzz
from hortus.vision.serving.description import BESIDE, read_description
from hortus.vision.serving.exporting import export_run
from hortus.vision.serving.formats import ExportError


@pytest.fixture(scope="module")
def content(detector, scenes, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("export") / "saved")
    images = [str(scenes / "images" / "val")]
    export_run(str(detector), "saved_model", path, images=images)
    with open(f"{path}/hortus_export.json", encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(tmp_path_factory.mktemp("damaged") / "model.onnx")


def written(path, text):
    with open(path + BESIDE, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
    return read_description(path)


def test_a_description_is_read_as_it_was_written(content, path):
    description = written(path, json.dumps(content))
    assert json.loads(description.to_json()) == content
    assert description.service().class_names == tuple(content["class_names"])


@pytest.mark.filterwarnings("ignore::hortus.hyperparams.ConfigWarning")
@fuzz.examples()
@given(seed=st.integers(0, 2**62))
def test_a_damaged_description_is_read_or_refused(content, path, seed):
    rng = random.Random(seed)
    if rng.random() < 0.3:
        text = damage.bytes_like(json.dumps(content).encode(), rng).decode("utf-8", "replace")
    else:
        text = json.dumps(damage.data_like(content, rng))
    try:
        description = written(path, text)
        assert description.form.name == description.format
        description.service()
    except (ExportError, hyperparams.ConfigError, registry.RegistryError):
        pass  # said in one sentence


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_names": "cat"}, "class_names: Input should be a valid tuple"),
        ({"class_names": [1]}, r"class_names\.0: Input should be a valid string"),
        ({"facts": []}, "facts: Input should be a valid dictionary"),
        ({"step": "soon"}, "step: Input should be a valid integer"),
        ({"config": None}, "config: Input should be a valid dictionary"),
        ({"hortus_export": 99}, "is of version 99; this hortus reads 1"),
    ],
)
def test_a_field_of_another_type_is_named(content, path, change, message):
    with pytest.raises(ExportError, match=message):
        written(path, json.dumps({**content, **change}))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "[" * 100_000, "{}", '"\\ud800"'])
def test_what_is_no_description_is_refused(path, text):
    with pytest.raises(ExportError, match="not what `hortus export` writes"):
        written(path, text)


def test_facts_that_the_task_does_not_know_are_told(content, path):
    description = written(path, json.dumps({**content, "facts": {"colour": "red"}}))
    with pytest.raises(ExportError, match=r"facts that its task does not know \(.*colour"):
        description.service()
