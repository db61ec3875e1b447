import pytest

from hortus.core import config_definitions as cfg
from hortus.engine.input_context import InputContext
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.learnt_classes import LearntClasses

TRAIN = cfg.DataConfig(is_training=True, input_path="mine/train")
VALIDATION = cfg.DataConfig(is_training=False, input_path="mine/val")


def test_training_names_the_classes_and_keeps_them_with_the_run(tmp_path):
    LearntClasses(str(tmp_path)).take(("a", "b"), TRAIN)
    assert LearntClasses(str(tmp_path)).names == ("a", "b")


def test_other_classes_are_an_error_that_names_both(tmp_path):
    classes = LearntClasses(str(tmp_path))
    classes.take(("a", "b"), TRAIN)
    with pytest.raises(DataError, match=r"mine/val: its classes \(a, c\) .* learnt \(a, b\)"):
        classes.take(("a", "c"), VALIDATION)
    with pytest.raises(DataError, match="are not"):  # a resumed run with other data
        LearntClasses(str(tmp_path)).take(("c",), TRAIN)


def test_many_classes_are_not_all_named():
    classes = LearntClasses()
    classes.take(tuple(map(str, range(20))), TRAIN)
    with pytest.raises(DataError, match=r"8, 9, \.\.\.\)"):
        classes.take(("x",), TRAIN)


def test_nothing_is_written_for_validation_by_other_hosts_or_without_names(tmp_path):
    for names, params, context in (
        (("a",), VALIDATION, None),
        (("a",), TRAIN, InputContext(2, 1)),
        ((), TRAIN, None),
    ):
        LearntClasses(str(tmp_path)).take(names, params, context)
    assert not list(tmp_path.iterdir())
