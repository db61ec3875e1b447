import numpy as np
import pytest

from hortus.core import logs


class Variable:
    """As both engines' variables are read."""

    def numpy(self):
        return np.float32(0.5)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (0.25, 0.25),
        (True, True),
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
        (np.array(2.0), 2.0),
        (Variable(), 0.5),
        (np.zeros([1]), None),
        ("text", None),
        (None, None),
        ([1, 2], None),
    ],
)
def test_as_scalar(value, expected):
    number = logs.as_scalar(value)
    assert number == expected
    assert type(number) is type(expected)


def test_as_scalar_of_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    number = logs.as_scalar(np.array(1.5, ml_dtypes.bfloat16))
    assert number == 1.5 and type(number) is float


def test_scalars_keeps_numbers_and_nesting_only():
    found = logs.scalars(
        {"a": 1, "image/x": np.zeros([1, 2, 2, 3]), "b": {"c": np.float32(2), "d": "no"}, "e": {}}
    )
    assert found == {"a": 1, "b": {"c": 2.0}}


def test_flatten():
    assert logs.flatten({"a": {"b": {"c": 1}}, "d": 2}) == {"a|b|c": 1, "d": 2}


def test_lookup_by_path_and_by_function():
    found = {"coco": {"AP": np.float32(0.5)}}
    assert logs.lookup(found, "coco|AP") == 0.5
    assert logs.lookup(found, lambda logs: logs["coco"]["AP"] * 2) == 1.0


def test_lookup_of_an_unknown_name_tells_the_near_ones():
    with pytest.raises(KeyError, match=r"did you mean 'accuracy'\?.*they hold accuracy, loss"):
        logs.lookup({"accuracy": 1.0, "loss": 2.0}, "acuracy")


def test_lookup_of_an_array_tells_its_shape():
    with pytest.raises(ValueError, match=r"'a' is no single number: shape \(2,\)"):
        logs.lookup({"a": np.zeros(2)}, "a")
