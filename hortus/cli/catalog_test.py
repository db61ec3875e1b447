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


def test_experiments_say_whether_and_from_what_they_train(tmp_path):
    from hortus.core import config_definitions as cfg
    from hortus.core import exp_factory
    from hortus.vision import experiments  # noqa: F401  registers them

    (tmp_path / "mine").mkdir()
    for name, path in (("here", tmp_path / "mine"), ("gone", tmp_path / "gone")):

        @exp_factory.register_config_factory(f"catalog_test_{name}")
        def _experiment(path=path):
            task = exp_factory.get_exp_config("retinanet").task
            task.init_checkpoint = str(path)
            return cfg.ExperimentConfig(task=task)

    rows = {row[0]: row[2:] for row in catalog.rows("experiments")}
    assert rows["resnet_imagenet"] == ("trains", "from scratch", "not measured")
    assert rows["retinanet"][2] == "AP50 0.906, AP 0.583 (small_coco_cpu.yaml)"
    assert rows["retinanet_resnetfpn_coco"][:2] == (
        "trains from other weights only",
        "from gs://.../resnet50_imagenet/ckpt-28080 (cannot be had)",
    )
    assert rows["video_classification"][0] == "no task yet"
    short = f".../{tmp_path.name}"
    assert rows["catalog_test_here"][:2] == ("trains", f"from {short}/mine")
    assert rows["catalog_test_gone"][1] == f"from {short}/gone (cannot be had)"
