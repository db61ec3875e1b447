import pytest

from hortus.hyperparams import assignments, errors
from hortus.hyperparams.origin import Origin
from hortus.hyperparams.types import ItemPatch


def read(text):
    return assignments.read_assignments(text, Origin("--flag"))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1", {"a": 1}),
        ("a.b.c=1,d=2", {"a": {"b": {"c": 1}}, "d": 2}),
        (" a . b = 1 , d = 2 ", {"a": {"b": 1}, "d": 2}),
        ("a=1,", {"a": 1}),
        ("a=[1, 2],b={c: 3, d: [4]}", {"a": [1, 2], "b": {"c": 3, "d": [4]}}),
        ("a=['x, y', z]", {"a": ["x, y", "z"]}),
        ("a='x, y',b=2", {"a": "x, y", "b": 2}),
        ("a='it''s, so',b=2", {"a": "it's, so", "b": 2}),
        (r'a="say \"a, b\"",b=2', {"a": 'say "a, b"', "b": 2}),
        ("a=it's,b=2", {"a": "it's", "b": 2}),
        ("a=''", {"a": ""}),
        (
            "a=null,b=~,c=true,d=1e-3,e=010,f=off",
            {"a": None, "b": None, "c": True, "d": 1e-3, "e": 10, "f": "off"},
        ),
        ("a='5'", {"a": "5"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=x: y", {"a": "x: y"}),
        ("a=#fff,b=x #y", {"a": "#fff", "b": "x #y"}),
        ("a=*.tfrecord", {"a": "*.tfrecord"}),
        ("a=gs://b/train*,b=/x/y", {"a": "gs://b/train*", "b": "/x/y"}),
        ("a=&x,b=!y,c=@z,d=%w", {"a": "&x", "b": "!y", "c": "@z", "d": "%w"}),
        ("a=train[:80%]", {"a": "train[:80%]"}),
        ("a=x]y,b=2", {"a": "x]y", "b": 2}),
        ("a=(1", {"a": "(1"}),
        ("a.my-set=1", {"a": {"my-set": 1}}),
        ("a=1,a=2", {"a": 2}),
        ("a=1,a.b=2", {"a": {"b": 2}}),
        ("a.b=2,a=1", {"a": 1}),
        ("a={b: 1},a.c=2", {"a": {"b": 1, "c": 2}}),
        ("a=[1, 2],a[0]=5,a[2]=6", {"a": [5, 2, 6]}),
        ("a=[{b: 1}],a[0].c=2", {"a": [{"b": 1, "c": 2}]}),
        ("a=x\ny", {"a": "x\ny"}),
    ],
)
def test_assignments_are_read(text, values):
    assert assignments.are_assignments(text)
    assert read(text) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a[0]=3,a[1]=4", {"a": ItemPatch({0: 3, 1: 4})}),
        ("a.0=3", {"a": ItemPatch({0: 3})}),
        ("a[1].b=2,a[1].c=3", {"a": ItemPatch({1: {"b": 2, "c": 3}})}),
        ("a[0][1]=2", {"a": ItemPatch({0: ItemPatch({1: 2})})}),
    ],
)
def test_an_index_patches_what_will_be_there(text, values):
    found = read(text)
    assert found == values
    assert type(found["a"]) is ItemPatch


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=1,b", "expected key=value, got 'b'; quote a value with commas"),
        ("a=1,,b=2", "expected key=value, got ''"),
        ("a=", "a has no value; write a='' or a=null"),
        ("a= ,b=1", "a has no value"),
        ("a..b=1", "'a..b' is not a path like"),
        ("a[x]=1", "'a[x]' is not a path like"),
        ("a b=1", "'a b' is not a path like"),
        ("a=1,=2", "'' is not a path like"),
        ("a='x", "' is not closed in \"a='x\""),
        ('a="x', '" is not closed'),
        ("a=[1, 2", "a bracket is not closed"),
        ("a={b: 1", "a bracket is not closed"),
        ("a=['x]", "' is not closed"),
        ("a=[1}", "a: cannot read the value"),
        ("a='x'y", "a: cannot read the value"),
        ("a={b: !!python/name:os.system x}", "a: cannot read the value"),
        ("a=" + "9" * 2000, "a: cannot read the value"),
        ("a=[1],a[5]=2", "no item [5] in a list of 1"),
        ("a" + ".b" * 100 + "=1", "is not a path like"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_the_flag(text, words):
    with pytest.raises(errors.ConfigError) as caught:
        read(text)
    assert str(caught.value).startswith("--flag: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text", ["a: 1", "{a: 1}", "a: b=c", "", "a", "[a=1]", '{"a": "b=c"}', "=1"]
)
def test_yaml_and_json_are_no_assignments(text):
    assert not assignments.are_assignments(text)
