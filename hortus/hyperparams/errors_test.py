import pickle

import pytest

from hortus.hyperparams import errors


def test_near_names_ignore_case_and_are_at_most_three():
    known = ["num_classes", "num_convs", "num_filters", "Num_Class", "activation"]
    near = errors.near_names("num_clases", known)
    assert near[0] == "num_classes"
    assert len(near) <= 3


def test_a_part_of_a_long_name_is_near_too():
    assert errors.near_names("coco", ["retinanet_resnetfpn_coco", "resnet_imagenet"]) == [
        "retinanet_resnetfpn_coco"
    ]


def test_without_a_near_name_the_known_ones_are_listed():
    assert errors.did_you_mean("zzz", ["alpha", "beta"]) == " Known: alpha, beta."
    assert errors.did_you_mean("zzz", []) == ""
    assert errors.did_you_mean("zzz", map(str, range(30))).endswith("11, ....")


def test_one_two_and_three_near_names_read_well():
    assert errors.did_you_mean("size", ["sizes"]) == " Did you mean sizes?"
    assert errors.did_you_mean("size", ["sizes", "sized"]).endswith(" or sized?")


def test_a_problem_names_path_origin_and_message():
    problem = errors.Problem(("a", 0, "b"), "too small", "f.yaml:3")
    assert str(problem) == "a[0].b (f.yaml:3): too small"
    assert str(errors.Problem((), "too small", "f.yaml:3")) == "f.yaml:3: too small"
    assert str(errors.Problem((), "too small")) == "too small"


def test_several_problems_are_all_listed_and_very_many_are_cut():
    few = errors.ConfigError([errors.Problem(("a",), "x"), errors.Problem(("b",), "y")])
    assert str(few) == "2 problems in the config:\n  - a: x\n  - b: y"
    many = errors.ConfigError([errors.Problem(("a", index), "x") for index in range(100)])
    assert str(many).endswith("- and 80 more")


@pytest.mark.parametrize(
    ("kind", "also"),
    [
        (errors.UnknownKeyError, (KeyError, AttributeError)),
        (errors.WrongTypeError, (TypeError,)),
        (errors.RestrictionError, (KeyError,)),
        (errors.LockedError, ()),
    ],
)
def test_each_kind_is_a_value_error_and_what_python_would_raise(kind, also):
    error = kind("nothing there")
    assert isinstance(error, (errors.ConfigError, ValueError))
    assert all(isinstance(error, one) for one in also)
    assert str(error) == "nothing there"  # KeyError alone would show its repr


def test_an_error_survives_pickling():
    error = errors.WrongTypeError([errors.Problem(("a",), "x", "f.yaml:1", errors.WrongTypeError)])
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is errors.WrongTypeError
    assert again.problems == error.problems


def test_the_kind_of_the_first_problem_is_raised():
    problems = [
        errors.Problem(("a",), "x", kind=errors.WrongTypeError),
        errors.Problem(("b",), "y", kind=errors.UnknownKeyError),
    ]
    with pytest.raises(errors.WrongTypeError):
        errors.raise_problems(problems)
    errors.raise_problems([])


def test_short_shows_what_python_refuses_to_print():
    assert errors.short(10**5000) == "a int too large to show"
    assert errors.short("x" * 100) == "'" + "x" * 56 + "..."
