import re

import pytest

from hortus.core import exp_factory
from hortus.vision import experiments  # noqa: F401  registers them
from hortus.vision.experiments import recipes


def test_every_recipe_changes_an_experiment():
    found = recipes.all_recipes()
    assert len(found) == len(list(recipes.FOLDER.glob("*/*.yaml"))) > 0
    assert {recipe.experiment for recipe in found} <= set(exp_factory.exp_names())


@pytest.mark.parametrize("recipe", recipes.all_recipes(), ids=lambda recipe: recipe.path.stem)
def test_what_is_said_to_be_measured_is_in_its_result(recipe):
    head = recipe.path.read_text("utf-8").partition("\nruntime:")[0]
    result = head.partition("Result:")[2]
    assert ("not measured yet" in result) == (not recipe.measured)
    for number in re.findall(r"[\d.]+", recipe.measured):
        assert number in result


def test_results_are_found_by_experiment():
    (result,) = recipes.results("retinanet")
    assert result == "AP50 0.906, AP 0.583 (small_coco_cpu.yaml)"
    assert recipes.results("resnet_imagenet") == []
