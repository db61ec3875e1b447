import json
import math

import pytest

from hortus.hyperparams import errors, json_text
from hortus.hyperparams.origin import Origin

FILE = Origin("f.json")


def read(text):
    return json_text.read_json(text, FILE, with_lines=True)[0]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": [1.5, -2e3, true, false, null], "c": {"d": {}}, "e": []}',
        '{"a":"b: c, d","e":"[x]","f":"{y}","g":"\\"quoted\\" \\\\","h":"\\u00e9\\/\\t"}',
        '\t{\t"a"\t:\t1\t,\n\t"b"\t:\t"x y"\t}\r\n',
        '{"emoji": "\\ud83d\\ude00", "raw": "\U0001f600 \u007f"}',
        '{"": 1, "a b": 2, "a:b": 3, "#": 4}',
        "[1, [2, [3]]]",
        '"text"',
        "5",
        "null",
        json.dumps({"a": "tab\there", "b": "\u2028"}),
    ],
)
def test_it_reads_what_the_json_module_reads(text):
    assert read(text) == json.loads(text)


def test_infinity_as_python_writes_it():
    values = read('{"a": Infinity, "b": -Infinity, "c": NaN}')
    assert (values["a"], values["b"]) == (math.inf, -math.inf)
    assert math.isnan(values["c"])


def test_a_tab_inside_of_text_stays_a_tab():
    assert read('{"a":\t"x\\ty"}') == {"a": "x\ty"}
    with pytest.raises(errors.ConfigError, match="Invalid control character"):
        read('{"a": "x\ty"}')


def test_every_value_knows_its_line():
    text = '{\n "a": 1,\n "b": {\n  "c": [\n   2,\n   {"d": "x\\ny"}\n  ]\n },\n "e": 3}'
    _, origins = json_text.read_json(text, FILE, with_lines=True)
    assert {".".join(map(str, path)): origin.line for path, origin in origins.items()} == {
        "a": 2,
        "b": 3,
        "b.c": 4,
        "b.c.0": 5,
        "b.c.1": 6,
        "b.c.1.d": 6,
        "e": 9,
    }
    _, origins = json_text.read_json(text, Origin("--flag"), with_lines=False)
    assert str(origins["b", "c"]) == "--flag"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n"a": 1,}', 2),
        ('{\n"a": 1 "b": 2}', 2),
        ("{a: 1}", 1),
        ("{'a': 1}", 1),
        ("", 1),
        ('{"a": 1} {"b": 2}', 1),
        ('{\n"a": 1, // comment\n"b": 2}', 2),
        ('{"a": 0x10}', 1),
        ('{"a": "open', 1),
    ],
)
def test_a_syntax_error_names_the_line(text, line):
    with pytest.raises(errors.ConfigError, match=rf"^f\.json:{line}: not valid JSON: "):
        read(text)


def test_a_key_that_is_set_twice_gives_a_warning():
    with pytest.warns(errors.ConfigWarning, match=r"a\.b \(f\.json:2\): set twice"):
        assert read('{"a": {"b": 1,\n"b": 2}}') == {"a": {"b": 2}}


@pytest.mark.parametrize("depth", [70, 500, 100_000])
@pytest.mark.parametrize("shape", [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_an_error(shape, depth):
    text = shape[0] * depth + "1" + shape[1] * depth
    with pytest.raises(errors.ConfigError, match="nested too deeply"):
        read(text)


def test_a_number_of_too_many_digits_is_an_error():
    with pytest.raises(errors.ConfigError, match=r"f\.json: not valid JSON"):
        read('{"a": ' + "9" * 5000 + "}")


def test_half_a_surrogate_pair_is_an_error():
    with pytest.raises(errors.ConfigError, match=r"f\.json:2: .* is no text"):
        read('{\n"a": "\\ud800"}')


def test_long_text_with_many_escapes_is_quick():
    # The pattern of a token must not try one text in many ways.
    text = json.dumps({"a": '\\"' * 200_000})
    assert read(text) == json.loads(text)
