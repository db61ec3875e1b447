import keras
import numpy as np

from hortus.engine.variables import find_variables, read, seed_states, set_to_zero


class Task:
    def __init__(self):
        self.counter = keras.Variable(0.0, name="counter")
        self.noise = keras.random.SeedGenerator(1)
        self.metrics = {"a": [keras.metrics.Mean(name="mean")]}
        self.name = "task"
        self.other = object()


def test_models_metrics_optimizers_and_tasks():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1), keras.layers.Dropout(0.5)])
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    metric, task = keras.metrics.Mean(), Task()
    found = find_variables(model, optimizer, [metric], task, model)
    expected = [
        *model.variables,
        *optimizer.variables,
        *metric.variables,
        task.counter,
        task.noise.state,
        *task.metrics["a"][0].variables,
    ]
    assert [id(v) for v in found] == [id(v) for v in expected]
    states = seed_states(found)
    assert len(states) == 2 and states[1] is task.noise.state


def test_nothing_is_found_in_plain_things():
    assert find_variables(3, "text", None, [], {"a": 1}) == []


def test_variables_are_read_and_set_to_zero():
    variables = [keras.Variable([[1.5, 2.0]]), keras.Variable(3, dtype="int32")]
    np.testing.assert_array_equal(read(variables[0]), [[1.5, 2.0]])
    np.testing.assert_array_equal(read(keras.ops.convert_to_tensor([4.0])), [4.0])
    set_to_zero(variables)
    assert [read(variable).tolist() for variable in variables] == [[[0.0, 0.0]], 0]
    # The zeros are shared: writing to one variable must not reach another.
    other = keras.Variable([[7.0, 7.0]])
    set_to_zero([other])
    other.assign_add([[1.0, 1.0]])
    assert read(variables[0]).tolist() == [[0.0, 0.0]]
