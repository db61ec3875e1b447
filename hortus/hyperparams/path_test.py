import pytest

from hortus.hyperparams import path


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("task", ("task",)),
        ("task.model.heads[0].size", ("task", "model", "heads", 0, "size")),
        ("a[1][2]", ("a", 1, 2)),
        ("weights.my-set", ("weights", "my-set")),
    ],
)
def test_a_path_is_written_as_it_is_read(text, parts):
    assert path.parse_path(text) == parts
    assert path.format_path(parts) == text


def test_spaces_and_dotted_indices_are_read_too():
    assert path.parse_path(" a . b [ 3 ] . c ") == ("a", "b", 3, "c")
    assert path.parse_path("a.0.b") == ("a", 0, "b")


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", "[0]", "0", "a[", "a[x]", "a[-1]", "a b", "a[0]b", "a.0b"]
)
def test_other_text_is_no_path(text):
    assert path.parse_path(text) is None


def test_a_very_long_name_is_cut():
    assert len(path.format_path(("x" * 10_000,))) == 60
