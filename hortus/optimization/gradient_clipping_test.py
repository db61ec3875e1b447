import numpy as np
import pytest
from keras import ops

from hortus.optimization.gradient_clipping import clip_by_global_norm, clip_by_value


def test_global_norm_scales_all_alike():
    gradients = [np.array([3.0], "float32"), None, np.array([[0.0, 4.0]], "float32")]
    clipped = clip_by_global_norm(gradients, 1.0)
    assert clipped[1] is None
    np.testing.assert_allclose(clipped[0], [0.6], 1e-6)
    np.testing.assert_allclose(clipped[2], [[0.0, 0.8]], 1e-6)


def test_a_small_norm_and_zeros_stay_as_they_are():
    for gradient in ([0.3, -0.4], [0.0, 0.0]):
        np.testing.assert_array_equal(
            clip_by_global_norm([ops.convert_to_tensor(gradient)], 1.0)[0], np.float32(gradient)
        )


def test_the_norm_of_half_precision_gradients_does_not_overflow():
    gradient = ops.full((4,), 300.0, dtype="float16")  # whose squares are beyond float16
    clipped = clip_by_global_norm([gradient], 1.0)[0]
    assert clipped.dtype == gradient.dtype
    np.testing.assert_allclose(ops.convert_to_numpy(clipped), 0.5, 1e-2)


def test_what_is_not_finite_is_not_hidden():
    clipped = clip_by_global_norm([np.array([np.nan, 1.0], "float32")], 1.0)[0]
    assert np.isnan(ops.convert_to_numpy(clipped)).all()


@pytest.mark.parametrize("gradients", [[], [None, None]])
def test_no_gradients(gradients):
    assert clip_by_global_norm(gradients, 1.0) == gradients


def test_value():
    clipped = clip_by_value([np.array([-3.0, 0.1, 3.0], "float32"), None], 0.5)
    np.testing.assert_allclose(clipped[0], [-0.5, 0.1, 0.5])
    assert clipped[1] is None
