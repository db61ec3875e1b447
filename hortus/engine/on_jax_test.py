import pathlib

import pytest

from hortus.testing import run_under_engine

FILES = ("collectives", "engine", "kernels", "keras_private", "loss_scale")


@pytest.mark.slow
def test_on_jax():
    # All in one process, as starting it takes longer than most of the tests.
    here = pathlib.Path(__file__)
    files = [here.with_name(f"{name}_test.py") for name in FILES]
    run_under_engine("jax", files, timeout=600)
