import dataclasses
import os
from typing import List

import pytest

from hortus.hyperparams import errors, overrides
from hortus.hyperparams.base_config import Config
from hortus.hyperparams.origin import Origin


@dataclasses.dataclass
class Tree(Config):
    name: str = "oak"
    sizes: List[int] = [1]
    rate: float = 0.5


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write_file


# ---- files ----------------------------------------------------------------------------------


def test_yaml_and_json_files_are_read_with_lines(write):
    for name, text in {"a.yaml": "x:\n  y: 1\n", "a.json": '{"x":\n {"y": 1}}'}.items():
        path = write(name, text)
        found = overrides.load_overrides(path)
        assert found.values == {"x": {"y": 1}}
        assert str(found.origin(("x", "y"))) == f"{path}:2"


def test_a_path_object_is_fine(tmp_path):
    (tmp_path / "a.yaml").write_text("x: 1")
    assert overrides.load_overrides(tmp_path / "a.yaml").values == {"x": 1}


def test_a_missing_comma_is_mended_with_file_and_line(write):
    path = write("a.yaml", "name: elm\nsizes: [320 320, 3]\n")
    tree = Tree()
    with pytest.warns(errors.ConfigWarning) as caught:
        tree.override(overrides.load_overrides(path))
    assert tree.sizes == [320, 320, 3]
    message = f"sizes[0] ({path}:2): a comma is missing in '320 320'; read as 320, 320"
    assert [str(one.message) for one in caught] == [message]


def test_a_byte_order_mark_is_skipped(write):
    assert overrides.load_overrides(write("a.yaml", b"\xef\xbb\xbfx: 1")).values == {"x": 1}
    assert overrides.load_overrides(write("a.json", b'\xef\xbb\xbf{"x": 1}')).values == {"x": 1}


def test_windows_line_ends_are_fine(write):
    path = write("a.yaml", b"x: 1\r\ny:\r\n  z: 2\r\n")
    found = overrides.load_overrides(path)
    assert found.values == {"x": 1, "y": {"z": 2}}
    assert found.origin(("y", "z")).line == 3


def test_a_missing_file_names_the_near_ones(write):
    path = write("resnet.yaml", "")
    with pytest.raises(
        errors.ConfigError, match=rf"resnt\.yaml: no such file\. Did you mean {path}"
    ):
        overrides.load_overrides(path.replace("resnet", "resnt"))
    with pytest.raises(
        errors.ConfigError, match="no such file; the folder 'nowhere' does not exist"
    ):
        overrides.load_overrides("nowhere/a.yaml")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe\x00", "not a text file in UTF-8"),
        (b"caf\xe9: 1", "not a text file in UTF-8"),
        (b"PNG\x00\x01", "not valid YAML"),
        ("- 1\n- 2\n", r"expected keys with values \(task: \.\.\.\), got a list"),
        ("just words\n", "got 'just words'"),
        ("5", "got 5"),
        ("x" * 4_000_001, "too large for a config"),
    ],
)
def test_a_file_that_is_no_config_is_an_error(write, content, words):
    path = write("a.yaml", content)
    with pytest.raises(errors.ConfigError, match=words) as caught:
        overrides.load_overrides(path)
    assert str(caught.value).startswith(path)


def test_an_empty_file_changes_nothing(write):
    assert overrides.load_overrides(write("a.yaml", "")).values == {}


def test_a_folder_or_a_forbidden_file_is_an_error(write, tmp_path):
    with pytest.raises(errors.ConfigError, match="cannot be read: Is a directory"):
        overrides.load_overrides(tmp_path)
    with pytest.raises(errors.ConfigError, match="UTF-8"):
        overrides.load_overrides("a\0.yaml")
    with pytest.raises(errors.ConfigError, match="cannot be read: File name too long"):
        overrides.load_overrides("a" * 5000)
    if os.geteuid():  # root may read everything
        path = write("a.yaml", "x: 1")
        os.chmod(path, 0)
        with pytest.raises(errors.ConfigError, match="cannot be read: Permission denied"):
            overrides.load_overrides(path)


def test_a_remote_file_is_an_error_that_says_what_to_do():
    with pytest.raises(errors.ConfigError, match=r"^gs://bucket/a\.yaml: .* copy it here first"):
        overrides.load_overrides("gs://bucket/a.yaml")


def test_json_is_read_as_json(write):
    text = '{\t"name": "a: b # c",\n\t"rate": 1e2, "sizes": [1,\t2]}'
    tree = Tree()
    tree.override(overrides.load_overrides(write("a.json", text)))
    assert tree.as_dict() == {"name": "a: b # c", "sizes": [1, 2], "rate": 100.0}
    with pytest.raises(errors.ConfigError, match=r"a\.json:2: not valid JSON"):
        overrides.load_overrides(write("a.json", "{\n'name': 1}"))


def test_later_files_win(write):
    tree = Tree()
    for path in (write("a.yaml", "name: elm\nrate: 1"), write("b.yaml", "rate: 2")):
        tree.override(overrides.load_overrides(path))
    assert tree.as_dict() == {"name": "elm", "sizes": [1], "rate": 2.0}
    assert tree.origin("rate").name.endswith("b.yaml")


# ---- text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b=1", {"a": {"b": 1}}),
        ("a: {b: 1}", {"a": {"b": 1}}),
        ("a:\n  b: 1\n", {"a": {"b": 1}}),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ('{"a":\t"b"}', {"a": "b"}),
        ("{a: 1, b: [x=1]}", {"a": 1, "b": ["x=1"]}),
        ("", {}),
        ("  \n", {}),
    ],
)
def test_text_is_assignments_yaml_or_json(text, values):
    assert overrides.parse_overrides(text).values == values


def test_text_is_named_by_its_flag():
    found = overrides.parse_overrides("a.b=1", "--params_override")
    assert str(found.origin(("a", "b"))) == "--params_override"
    assert str(overrides.parse_overrides("a: 1").origin(("a",))) == "override"
    assert repr(found) == "Overrides({'a': {'b': 1}} from --params_override)"
    with pytest.raises(errors.ConfigError, match=r"^--flag: expected keys with values"):
        overrides.parse_overrides("resnet", "--flag")


def test_the_nearest_known_place_counts():
    known = {("a",): Origin("f", 1), ("a", "b"): Origin("f", 2)}
    found = overrides.Overrides({}, known, Origin("f"))
    assert found.origin(("a", "b", "c")).line == 2
    assert found.origin(("a", "x")).line == 1
    assert found.origin(("x",)).line is None


def test_override_params_dict_takes_values_text_and_files(write):
    path = write("a.yaml", "name: elm")
    for given in ({"name": "elm"}, "name=elm", "name: elm", Tree(name="elm"), path):
        assert overrides.override_params_dict(Tree(), given) == Tree(name="elm")
    with pytest.raises(errors.UnknownKeyError):
        overrides.override_params_dict(Tree(), "nam=1")
    with pytest.warns(errors.ConfigWarning):
        assert overrides.override_params_dict(Tree(), "nam=1", is_strict=False).nam == 1
