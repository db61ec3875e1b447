"""What the tests of this folder share."""

import keras
import pytest


@pytest.fixture(scope="session")
def compiled():
    """Compiles a function as the engine at hand would.

    Left to itself, JAX compiles operation by operation: most of the time of a test.
    """
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit
    import tensorflow as tf

    return lambda function: tf.function(function, autograph=False)
