import pathlib

from hortus.testing import run_under_engine


def test_on_jax():
    # All tests of this folder in one process, as starting it takes longer than most of them. The
    # contracts, which build each model many times, take too long to be compiled twice over, and the
    # numbers of parameters are the same on all engines.
    folder = pathlib.Path(__file__).parent
    run_under_engine(
        "jax", folder, select="not on_tensorflow and not contract and not parameter", timeout=900
    )
