import pytest
import typer

from hortus.cli import options


@pytest.mark.parametrize(
    ("experiment", "words", "expected"),
    [
        (None, ["flowers", "a.b=1"], ("flowers", ["a.b=1"])),
        ("flowers", ["a.b=1", "c=2"], ("flowers", ["a.b=1", "c=2"])),
        ("flowers", None, ("flowers", [])),
        (None, ["a.b=1"], (None, ["a.b=1"])),
    ],
)
def test_an_experiment_is_the_first_word_or_an_option(experiment, words, expected):
    assert options.split(experiment, words) == expected


@pytest.mark.parametrize(
    ("experiment", "words", "message"),
    [
        ("flowers", ["trees"], "two experiments: flowers and trees"),
        (None, ["flowers", "trees"], "'trees' is no override: expected KEY=VALUE"),
        (None, ["a.b=1"], "which experiment"),
    ],
)
def test_what_cannot_be_meant_is_told(experiment, words, message):
    with pytest.raises(typer.BadParameter, match=message):
        options.split_named(experiment, words)
