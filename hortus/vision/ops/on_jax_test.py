import pathlib

from hortus.testing import run_under_engine


def test_on_jax():
    # All tests of this folder in one process, as starting it takes longer than most of them.
    run_under_engine("jax", pathlib.Path(__file__).parent, select="not on_tensorflow", timeout=600)
