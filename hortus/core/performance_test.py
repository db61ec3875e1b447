import random

import keras
import numpy as np
import pytest

from hortus.core import config_definitions as cfg
from hortus.core import performance
from hortus.engine import kernels


@pytest.fixture(autouse=True)
def _same_policy_afterwards():
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)


@pytest.mark.parametrize(
    ("dtype", "compute"),
    [(None, "float32"), ("float16", "float16"), ("mixed_bfloat16", "bfloat16")],
)
def test_layers_compute_in_the_type_and_keep_float32_weights(dtype, compute):
    performance.set_mixed_precision_policy(dtype)
    layer = keras.layers.Dense(2)
    layer.build([None, 3])
    assert (layer.compute_dtype, layer.kernel.dtype) == (compute, "float32")


def test_an_unknown_type_names_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown mixed precision type 'half'.*bfloat16"):
        performance.set_mixed_precision_policy("half")


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow has the fast way")
def test_a_run_chooses_how_convolutions_train():
    inputs, kernel = np.zeros((4, 16, 16, 256), "float32"), np.zeros((3, 3, 256, 256), "float32")
    try:
        performance.set_fast_kernels(False)
        assert kernels.convolution_3x3.fast([inputs], kernel, (1, 1)) is None
    finally:
        performance.set_fast_kernels(True)
    assert kernels.convolution_3x3.fast([inputs], kernel, (1, 1)) is not None


def test_a_seed_makes_python_numpy_and_keras_repeat_themselves():
    def draw():
        numpy = np.random.rand()  # noqa: NPY002 (the one that is seeded)
        return random.random(), numpy, keras.initializers.GlorotUniform()([2, 2])

    drawn = []
    for _ in range(2):
        assert performance.set_seed_and_determinism(cfg.RuntimeConfig(seed=3)) == 3
        drawn.append(draw())
    np.testing.assert_array_equal(drawn[0][2], drawn[1][2])
    assert drawn[0][:2] == drawn[1][:2]
    assert performance.set_seed_and_determinism(cfg.RuntimeConfig()) is None
