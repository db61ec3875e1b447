import keras
import numpy as np
import pytest
from keras import ops

from hortus.engine import kernels

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


@pytest.mark.skipif(not ON_TENSORFLOW, reason="only TensorFlow has the kernel")
@pytest.mark.parametrize("fixed", [False, True])
def test_fused_batch_norm_is_the_formula(fixed):
    random = np.random.RandomState(0)
    x = random.normal(2.0, 3.0, (4, 3, 5, 6)).astype("float32")
    gamma, beta, mean = random.normal(size=(3, 6)).astype("float32")
    variance = mean**2 + 0.1
    given = {"mean": mean, "variance": variance} if fixed else {}
    y, *moments = kernels.fused_batch_norm(x, gamma, beta, epsilon=1e-3, **given)
    if not fixed:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    # float32 rounding of sums of 60 numbers.
    np.testing.assert_allclose(moments, [mean, variance], rtol=1e-5)
    expected = (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    np.testing.assert_allclose(y, expected, atol=1e-4)


def test_fused_batch_norm_leaves_alone_what_the_kernel_would_change():
    x, one = np.ones((2, 1, 1, 3), "float32"), np.ones(3, "float32")
    assert kernels.fused_batch_norm(x, one, one, epsilon=1e-6) is None
    assert kernels.fused_batch_norm(ops.cast(x, "int32"), one, one, epsilon=1e-3) is None


def test_outside_of_a_strategy_there_is_one_replica():
    assert kernels.separate_replicas() == 1
    assert ops.convert_to_numpy(kernels.sum_over_replicas(ops.ones(()))) == 1.0
