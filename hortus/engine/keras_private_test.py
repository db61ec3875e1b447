"""What hortus relies on in Keras without Keras promising it. Run on both engines."""

import keras
import numpy as np
import pytest

from hortus.engine import keras_private


def number(value):
    return float(keras.ops.convert_to_numpy(value))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a matter of TensorFlow's")
def test_an_optimizer_asks_one_method_for_the_sum_over_replicas():
    optimizer = keras.optimizers.SGD(1.0, global_clipnorm=100.0)
    variable = keras.Variable([1.0])
    optimizer.build([variable])
    asked = []
    original = optimizer._all_reduce_sum_gradients
    optimizer._all_reduce_sum_gradients = lambda pairs: asked.append(1) or original(pairs)
    optimizer.apply([keras.ops.ones(1)], [variable])
    assert asked == [1]
    keras_private.leave_reduction_to_caller(optimizer)
    optimizer.apply([keras.ops.ones(1)], [variable])
    assert asked == [1] and number(variable[0]) == -1.0


def test_an_optimizer_without_that_method_is_an_error():
    with pytest.raises(AttributeError, match="_all_reduce_sum_gradients"):
        keras_private.leave_reduction_to_caller(object())


def test_values_in_a_stateless_scope_are_keyed_by_the_id_of_the_variable():
    variable = keras.Variable(1.0)
    assert keras_private.stateless_scope() is None
    with keras.StatelessScope(state_mapping=[(variable, keras.ops.ones(()) * 2)]) as scope:
        assert keras_private.stateless_scope() is scope
        assert number(variable.value) == 2.0
        variable.assign(keras.ops.ones(()) * 3)
        assert number(keras_private.scope_values(scope)[id(variable)]) == 3.0
        keras_private.scope_values(scope)[id(variable)] = keras.ops.ones(()) * 4
        assert number(variable.value) == 4.0
    assert number(variable.value) == 1.0


@pytest.mark.parametrize("wrap", [lambda x: x, keras.optimizers.LossScaleOptimizer])
def test_an_optimizer_keeps_its_schedule(wrap):
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([10], [1.0, 0.5])
    assert keras_private.schedule_of(wrap(keras.optimizers.SGD(schedule))) is schedule
    assert keras_private.schedule_of(wrap(keras.optimizers.SGD(0.5))) is None


def test_seed_generators_keep_their_state_in_a_variable_of_this_name():
    from hortus.engine.variables import seed_states

    layer = keras.layers.Dropout(0.5, seed=3)
    layer(np.ones((1, 2), "float32"), training=True)
    assert len(seed_states(layer.variables)) == 1
