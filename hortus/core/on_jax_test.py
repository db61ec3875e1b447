import pathlib

import pytest

from hortus.testing import run_under_engine

FILES = ("base_task", "base_trainer", "compat", "distribute_utils", "train_lib")
# Of the longest file, what runs other code on JAX.
SELECT = (
    "not train_lib_test or memory or diverges_is_tried or overfit or end_of_the_data "
    "or given_steps or one_by_one or only_at_the_first_time"
)


@pytest.mark.slow
def test_on_jax():
    # All in one process, as starting it takes longer than most of the tests.
    here = pathlib.Path(__file__)
    files = [here.with_name(f"{name}_test.py") for name in FILES]
    run_under_engine("jax", files, select=SELECT, timeout=600)
