import keras
import numpy as np
import pytest

from hortus import engine
from hortus.vision.modeling.layers.regularization.regularizers import L2


def test_value_and_gradient_are_those_of_keras():
    weight = keras.Variable(np.random.default_rng(0).normal(size=(3, 4)).astype("float32"))
    (value, _), (gradient,) = engine.value_and_grad(lambda: (L2(0.25)(weight), None), [weight])
    expected = keras.ops.convert_to_numpy(weight)
    # One float32 sum of twelve numbers, in any order.
    assert float(value) == pytest.approx(float(0.25 * (expected**2).sum()), rel=1e-6)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(gradient), 0.5 * expected, rtol=1e-6)


def test_settings_survive_serialisation():
    made = keras.regularizers.deserialize(keras.regularizers.serialize(L2(0.25)))
    assert type(made) is L2 and made.l2 == 0.25
