import json

import keras
import numpy as np

from hortus.optimization.gradient_transformation import ClipByValue, GradientTransformation


def test_transformers_come_before_the_clip_of_the_optimizer():
    variable = keras.Variable([0.0, 0.0])
    inner = keras.optimizers.SGD(1.0, clipnorm=1.0)
    double = lambda pairs: [(2.0 * gradient, v) for gradient, v in pairs]  # noqa: E731
    optimizer = GradientTransformation(inner, [double, ClipByValue(3.0)])
    optimizer.build([variable])
    optimizer.apply([np.array([3.0, 2.0], "float32")])  # doubled 6, 4, by value 3, 3, by norm
    np.testing.assert_allclose(variable.numpy(), -np.sqrt([0.5, 0.5]), 1e-6)


def test_a_missing_gradient_stays_missing():
    moved, still = keras.Variable([0.0]), keras.Variable([7.0])
    optimizer = GradientTransformation(keras.optimizers.SGD(1.0), [ClipByValue(0.5)])
    optimizer.apply_gradients([(np.array([2.0], "float32"), moved), (None, still)])
    assert moved.numpy() == [-0.5]
    assert still.numpy() == [7.0]


def test_transformers_see_gradients_without_the_loss_scale():
    variable = keras.Variable([0.0])
    seen = []
    look = lambda pairs: seen.extend(float(g[0]) for g, _ in pairs) or pairs  # noqa: E731
    optimizer = GradientTransformation(keras.optimizers.SGD(1.0), [look])
    optimizer.loss_scale_factor = 64.0
    assert float(optimizer.scale_loss(np.float32(0.5))) == 32.0
    optimizer.apply_gradients([(np.array([32.0], "float32"), variable)])
    assert seen == [0.5]
    assert variable.numpy() == [-0.5]


def test_it_survives_serialisation():
    optimizer = GradientTransformation(keras.optimizers.SGD(1.0), [ClipByValue(0.5)])
    data = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
    again = keras.optimizers.deserialize(data)
    assert again.get_config() == optimizer.get_config()
    assert again.transformers[0].value == 0.5
