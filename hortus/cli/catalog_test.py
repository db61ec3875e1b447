import dataclasses

import pytest

from hortus import hyperparams
from hortus.cli import catalog
from hortus.cli.errors import CommandError


def test_rows_are_sorted_and_unique():
    names = [row[0] for row in catalog.rows("optimizers")]
    assert names == sorted(set(names))
    assert "sgd" in names


@pytest.mark.parametrize("pattern", ["ada*", "ADA*", "adamw", "*w"])
def test_a_pattern_selects(pattern):
    names = [row[0] for row in catalog.rows("optimizers", pattern)]
    assert "adamw" in names
    assert "sgd" not in names


def test_a_pattern_that_matches_nothing_names_near_ones():
    with pytest.raises(CommandError, match=r"no optimizers match 'adamx'.*adam"):
        catalog.rows("optimizers", "adamx")


def test_a_subclass_adds_to_the_choices():
    from hortus import optimization

    @dataclasses.dataclass
    class Sleepy(hyperparams.Config):
        """Never learns."""

    @dataclasses.dataclass
    class OptimizerConfig(optimization.OptimizerConfig):
        sleepy: Sleepy = Sleepy()

    assert OptimizerConfig.choices()
    assert ("sleepy", "Never learns.") in catalog.rows("optimizers")


def test_a_class_without_docstring_has_an_empty_description():
    @dataclasses.dataclass
    class NamelessHead(hyperparams.Config):
        size: int = 1

    assert ("NamelessHead", "") in catalog.rows("heads")
    assert NamelessHead.__doc__  # the one that dataclasses make up
