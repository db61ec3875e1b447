"""Settings for every test, made before any test module is imported."""

import gc
import os

import pytest

# TensorFlow reads this once, when it loads.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# A user's own settings must not reach the tests of the command line.
for _name in ("HORTUS_IMPORT", "HORTUS_DEBUG"):
    os.environ.pop(_name, None)
gc.set_threshold(100_000, 50, 50)  # tests make many objects, and most of them stay for a while


@pytest.fixture(autouse=True, scope="module")
def _let_the_collector_rest():
    """Hides from the garbage collector what outlives a module.

    Graphs and models that Keras and TensorFlow keep make a heap of millions of objects, which each
    full collection would walk through: late tests took tens of seconds in place of one.
    """
    yield
    gc.collect()
    gc.freeze()
