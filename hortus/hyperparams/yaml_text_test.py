import math
import os
import time
import warnings

import pytest
import yaml

from hortus.hyperparams import errors, yaml_text
from hortus.hyperparams.origin import Origin

FILE = Origin("f.yaml")


def read(text):
    return yaml_text.read_yaml(text, FILE, with_lines=True)[0]


def same(value, expected):
    return value == expected and type(value) is type(expected)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e-3", 1e-3),
        ("1E5", 1e5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1.5e+3", -1500.0),
        ("1_000", 1000),
        ("010", 10),
        ("-010", -10),
        ("0o10", 8),
        ("0x1F", 31),
        ("+5", 5),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("off", "off"),
        ("on", "on"),
        ("yes", "yes"),
        ("No", "No"),
        ("y", "y"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("1e", "1e"),
        ("0x", "0x"),
        ("0b11", "0b11"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        (".", "."),
        ("=", "="),
        ("nan", "nan"),
        ("gs://bucket/a*", "gs://bucket/a*"),
    ],
)
def test_plain_words_by_yaml_1_2(word, value):
    assert same(yaml_text.read_word(word), value)
    if word != "-":  # which starts a list
        assert same(read(f"a: {word}")["a"], value)


def test_not_a_number():
    assert math.isnan(read("a: .nan")["a"])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: '1'", "1"),
        ('a: "off"', "off"),
        ("a: !!str 5", "5"),
        ("a: !!int '5'", 5),
        ("a: !!float 5", 5.0),
        ("a: !!bool yes", True),
        ("a: !!python/tuple [1, 2]", (1, 2)),
        ("a: !!python/tuple\n- 1", (1,)),
        ("a:", None),
        ("a: |\n  x\n  y\n", "x\ny\n"),
        ("a: <<", "<<"),
        ("? a\n: 1", 1),
    ],
)
def test_other_values(text, value):
    assert same(read(text)["a"], value)


def test_nothing_is_no_values():
    assert read("") == {}
    assert read("# only a comment\n---\n") == {}


# ---- lines ----------------------------------------------------------------------------------


def test_every_value_knows_its_line():
    text = "# comment\na: 1\nb:\n  c: 2\n  d:\n  - x\n  - e: 3\nf: [4,\n  5]\n"
    _, origins = yaml_text.read_yaml(text, FILE, with_lines=True)
    assert {".".join(map(str, path)): origin.line for path, origin in origins.items()} == {
        "a": 2,
        "b": 3,
        "b.c": 4,
        "b.d": 5,
        "b.d.0": 6,
        "b.d.1": 7,
        "b.d.1.e": 7,
        "f": 8,
        "f.0": 8,
        "f.1": 9,
    }


def test_text_of_a_flag_has_no_lines():
    _, origins = yaml_text.read_yaml("a: {b: 1}", Origin("--flag"), with_lines=False)
    assert {str(origin) for origin in origins.values()} == {"--flag"}


# ---- duplicates, aliases, merge keys --------------------------------------------------------


def test_a_key_that_is_set_twice_gives_a_warning():
    with pytest.warns(errors.ConfigWarning) as caught:
        assert read("a:\n  b: 1\n  c: 2\n  b: 3\n") == {"a": {"b": 3, "c": 2}}
    assert [str(one.message) for one in caught] == [
        "a.b (f.yaml:4): set on line 2 too; the last one counts"
    ]
    with pytest.warns(errors.ConfigWarning, match="set twice; the last one counts"):
        yaml_text.read_yaml("{a: 1, a: 2}", Origin("--flag"), with_lines=False)


def test_aliases_stand_for_a_copy():
    values = read("a: &x {b: [1]}\nc: *x\n")
    assert values == {"a": {"b": [1]}, "c": {"b": [1]}}
    values["a"]["b"].append(2)
    assert values["c"] == {"b": [1]}


def test_merge_keys_bring_in_what_is_not_set():
    text = (
        "base: &base {a: 1, b: 2}\n"
        "more: &more {b: 3, c: 4}\n"
        "one:\n  b: 9\n  <<: *base\n"
        "two:\n  <<: [*base, *more]\n  a: 8\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # to set a key that is merged in is no mistake
        values, origins = yaml_text.read_yaml(text, FILE, with_lines=True)
    assert values["one"] == {"a": 1, "b": 9}
    assert values["two"] == {"a": 8, "b": 2, "c": 4}
    assert origins["one", "a"].line == 1
    assert origins["one", "b"].line == 4
    assert origins["two", "c"].line == 2


@pytest.mark.parametrize("text", ["a: {<<: 5}", "a: {<<: [1]}", "a:\n  <<: text"])
def test_a_merge_key_takes_mappings_only(text):
    with pytest.raises(errors.ConfigError, match="<< takes a mapping"):
        read(text)


@pytest.mark.parametrize("text", ["a: &x [*x]", "a: &x {b: *x}", "a: &x {<<: *x}", "&x {a: *x}"])
def test_what_refers_to_itself_is_an_error(text):
    with pytest.raises(errors.ConfigError, match=r"f\.yaml:1: refers to itself"):
        read(text)


@pytest.mark.parametrize("kind", ["list", "merge"])
def test_a_bomb_of_aliases_is_an_error_and_quick(kind):
    text = "a0: &a0 {x: 1}\n"
    for index in range(1, 40):
        previous = f"*a{index - 1}"
        inner = f"[{previous}, {previous}]"
        text += f"a{index}: &a{index} " + (inner if kind == "list" else f"{{<<: {inner}}}") + "\n"
    start = time.process_time()
    with pytest.raises(errors.ConfigError, match="more than 100000 values"):
        read(text)
    assert time.process_time() - start < 100  # 2**40 values would take days


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system ['touch {marker}']",
        "a: !!python/object/new:os.system ['touch {marker}']",
        "a: !!python/object/apply:subprocess.Popen [['touch', '{marker}']]",
        "a: !!python/name:os.system",
        "a: !!python/module:os",
        "!!python/object/apply:os.system ['touch {marker}']: 1",
        "a: !!map [1]",
        "a: !!binary aGk=",
        "a: !!set {{x}}",
        "a: !!omap [x: 1]",
        "a: !!timestamp 2024-01-01",
        "a: !mine 5",
        "a: !mine [5]",
        "a: !mine {{b: 5}}",
        "a: !!python/tuple {{b: 5}}",
        "a: !!seq 5",
    ],
)
def test_other_tags_are_errors_and_run_nothing(text, tmp_path):
    marker = tmp_path / "ran"
    with pytest.raises(errors.ConfigError, match=r"f\.yaml:1: .*(not allowed|plain word)"):
        read(text.format(marker=marker))
    assert not os.path.exists(marker)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", 3),
        ("a: 1\n b: 2\n", 2),
        ("a:\n\t- 1\n", 2),
        ("a: *nope\n", 1),
        ("a: 'x\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: b: c\n", 1),
        ("\n\na: %\n", 3),
        ("a: {b: 1]\n", 1),
        ("- 1\na: 2\n", 2),
        ("a: 1\nb: \x01\n", 2),
        ("a: 1\n\nb: \x7f\n", 3),
    ],
)
def test_what_is_not_yaml_names_the_line(text, line):
    with pytest.raises(errors.ConfigError, match=rf"^f\.yaml:{line}: not valid YAML: "):
        read(text)


def test_in_a_flag_the_line_is_said_in_words():
    with pytest.raises(errors.ConfigError, match=r"^--flag, line 2: not valid YAML"):
        yaml_text.read_yaml("a: 1\n b: 2", Origin("--flag"), with_lines=False)


@pytest.mark.parametrize("text", ["? [a, b]\n: 1", "? {a: b}\n: 1", "{[1]: 2}"])
def test_a_key_is_a_word(text):
    with pytest.raises(errors.ConfigError, match=r"f\.yaml:1: a key must be a plain word"):
        read(text)


@pytest.mark.parametrize("depth", [70, 300, 5_000, 200_000])
@pytest.mark.parametrize("shape", ["[", "{a: ", "- "])
def test_deep_nesting_is_an_error_and_quick(shape, depth):
    start = time.process_time()
    with pytest.raises(errors.ConfigError, match="nested too deeply"):
        read("x: " + shape * depth if shape != "- " else shape * depth + "1")
    assert time.process_time() - start < 30  # not with the square of the depth


def test_nesting_that_a_config_may_have_is_fine():
    text = "a: " + "[" * 60 + "]" * 60
    assert str(read(text)["a"]).count("[") == 60


@pytest.mark.parametrize("number", ["1" * 1001, "0x" + "f" * 1001, "-" + "9" * 100_000])
def test_a_number_of_too_many_digits_is_an_error(number):
    with pytest.raises(errors.ConfigError, match=r"f\.yaml:1: .* is no int"):
        read(f"a: {number}")


def test_a_large_number_is_fine():
    assert read(f"a: {10**300}")["a"] == 10**300


@pytest.mark.parametrize("text", ["a: !!int x", "a: !!float x", "a: !!bool maybe", r'a: "\ud800"'])
def test_what_contradicts_its_tag_is_an_error(text):
    with pytest.raises(errors.ConfigError, match=r"f\.yaml:1: .* is no (int|float|bool|str)"):
        read(text)


# ---- writing --------------------------------------------------------------------------------

PLAIN = {
    "number": 1e-05,
    "large": 1e20,
    "inf": math.inf,
    "whole": 3.0,
    "int": -7,
    "none": None,
    "yes": True,
    "words": [
        "off",
        "1e-3",
        "010",
        "1:30",
        "null",
        "",
        "2024-01-01",
        "0x1F",
        "=",
        "<<",
        "~",
        "- a",
    ],
    "more": [
        "a: b",
        "#x",
        "*x",
        "!x",
        "{",
        "%",
        "'",
        '"',
        " x ",
        "x\ny",
        "\t",
        "\u00e9\u4e2d\U0001f600",
    ],
    "nested": {"lists": [[1, 2], [3]], "maps": [{"a": 1}], "empty": {}, "none": []},
    3: {"int key": 1},
    "off": 1,
    "long": "word " * 100,
}


def test_what_is_written_is_read_back():
    assert read(yaml_text.dump_yaml(PLAIN)) == PLAIN


def test_other_readers_understand_it_too():
    # YAML 1.1, as most tools have it: words are quoted that it would take for something else.
    assert yaml.safe_load(yaml_text.dump_yaml(PLAIN)) == PLAIN


def test_lists_of_plain_values_stay_on_one_line_and_tuples_are_lists():
    text = yaml_text.dump_yaml({"a": (1, 2), "b": [{"c": [3]}]})
    assert text == "a: [1, 2]\nb:\n- c: [3]\n"


def test_the_same_object_twice_is_written_twice():
    shared = [1]
    assert yaml_text.dump_yaml({"a": shared, "b": shared}) == "a: [1]\nb: [1]\n"


@pytest.mark.parametrize(
    "value", [object(), 1j, "\ud800", 10**5000], ids=["object", "complex", "half", "huge"]
)
def test_what_cannot_be_written_is_an_error(value):
    with pytest.raises(errors.ConfigError, match="cannot be written as YAML"):
        yaml_text.dump_yaml({"a": value})
