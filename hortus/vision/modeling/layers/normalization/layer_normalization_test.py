import keras
import numpy as np
import pytest
from keras import ops

from hortus.vision.modeling.layers.normalization.layer_normalization import LayerNormalization


@pytest.mark.parametrize("options", [{}, {"center": False}, {"axis": 1}])
def test_like_keras(options):
    x = np.random.RandomState(0).normal(2.0, 3.0, (2, 5, 8)).astype("float32")
    ours = LayerNormalization(**options)
    theirs = keras.layers.LayerNormalization(epsilon=1e-6, **options)
    ours.build(x.shape), theirs.build(x.shape)
    for weight in (*ours.weights, *theirs.weights):
        weight.assign(np.linspace(-1.0, 2.0, weight.shape[0]))
    # float32 rounding of values around 3.
    np.testing.assert_allclose(ours(x), theirs(x), atol=2e-6)


def test_mixed_precision_computes_in_float32():
    layer = LayerNormalization(dtype="mixed_bfloat16")
    x = ops.cast(np.linspace(1000.0, 1031.0, 32).reshape(2, 16), "bfloat16")
    y = layer(x)
    assert keras.backend.standardize_dtype(y.dtype) == "bfloat16"
    y = ops.convert_to_numpy(ops.cast(y, "float32"))
    np.testing.assert_allclose(y.mean(-1), 0.0, atol=0.02)  # bfloat16 has 8 bits


def test_round_trip():
    layer = LayerNormalization(epsilon=1e-4, name="norm")
    assert LayerNormalization.from_config(layer.get_config()).get_config() == layer.get_config()
