import keras
import numpy as np
import pytest

from hortus.optimization.optimizer_wrapper import OptimizerWrapper


def test_everything_is_the_inner_optimizers():
    variable = keras.Variable([1.0])
    inner = keras.optimizers.SGD(0.5, momentum=0.9, loss_scale_factor=4.0)
    optimizer = OptimizerWrapper(inner)
    assert optimizer.apply_gradients([(np.array([4.0], "float32"), variable)]) is inner.iterations
    assert variable.numpy() == [0.5]
    assert float(optimizer.scale_loss(np.float32(2.0))) == 8.0
    assert [v.path for v in optimizer.variables] == [v.path for v in inner.variables]


def test_the_learning_rate_can_be_set_through_all_layers():
    inner = keras.optimizers.SGD(0.5)
    optimizer = OptimizerWrapper(keras.optimizers.LossScaleOptimizer(OptimizerWrapper(inner)))
    optimizer.learning_rate = 0.25
    assert float(inner.learning_rate) == 0.25


def test_a_fixed_loss_scale_reaches_the_inner_optimizer():
    variable = keras.Variable([1.0])
    inner = keras.optimizers.SGD(1.0)
    optimizer = OptimizerWrapper(inner)
    optimizer.loss_scale_factor = 8.0
    assert inner.loss_scale_factor == optimizer.loss_scale_factor == 8.0
    optimizer.apply_gradients([(np.array([4.0], "float32"), variable)])
    assert variable.numpy() == [0.5]


def test_gradients_alone_need_a_built_optimizer():
    with pytest.raises(ValueError, match="is not built"):
        OptimizerWrapper(keras.optimizers.SGD(0.5)).apply([np.array([1.0], "float32")])


def test_keras_trains_with_it():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(OptimizerWrapper(keras.optimizers.SGD(0.1)), "mse")
    inputs = np.random.default_rng(0).normal(size=(16, 2))
    history = model.fit(inputs, inputs @ [[1.0], [2.0]], epochs=4, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
