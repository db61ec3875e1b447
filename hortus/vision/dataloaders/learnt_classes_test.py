import pytest

from hortus.core import config_definitions as cfg
from hortus.core import train_utils
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.learnt_classes import LearntClasses

TRAIN = cfg.DataConfig(is_training=True, input_path="mine/train")
VALIDATION = cfg.DataConfig(is_training=False, input_path="mine/val")


def test_data_names_the_classes_and_nothing_is_written(tmp_path):
    classes = LearntClasses(str(tmp_path))
    for names, params in ((), TRAIN), (("a", "b"), TRAIN), (("a", "b"), VALIDATION):
        classes.take(names, params)
    assert classes.names == ("a", "b")
    assert not list(tmp_path.iterdir())  # whoever starts the run keeps them


def test_the_classes_of_a_run_are_known(tmp_path):
    train_utils.save_class_names(("a", "b"), tmp_path)
    assert LearntClasses(str(tmp_path)).names == ("a", "b")


def test_other_classes_are_an_error_that_names_both(tmp_path):
    classes = LearntClasses(str(tmp_path))
    classes.take(("a", "b"), TRAIN)
    with pytest.raises(DataError, match=r"mine/val: its classes \(a, c\) .* learnt \(a, b\)"):
        classes.take(("a", "c"), VALIDATION)
    train_utils.save_class_names(classes.names, tmp_path)
    with pytest.raises(DataError, match="are not"):  # a resumed run with other data
        LearntClasses(str(tmp_path)).take(("c",), TRAIN)


def test_many_classes_are_not_all_named():
    classes = LearntClasses()
    classes.take(tuple(map(str, range(20))), TRAIN)
    with pytest.raises(DataError, match=r"8, 9, \.\.\.\)"):
        classes.take(("x",), TRAIN)
