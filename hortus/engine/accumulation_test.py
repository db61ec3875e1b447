import keras
import numpy as np
import pytest

from hortus.engine.accumulation import GradientCollector, part


def numbers(tensor):
    return keras.ops.convert_to_numpy(tensor).tolist()


def test_parts_are_every_nth_example_and_together_all_of_them():
    batch = {"x": np.arange(6), "y": (np.arange(12).reshape(6, 2), np.float32(3))}
    assert numbers(part(batch, 1, 3)["x"]) == [1, 4]
    assert numbers(part(batch, 0, 2)["y"][0]) == [[0, 1], [4, 5], [8, 9]]
    assert part(batch, 0, 2)["y"][1] == 3  # a scalar is for every part


def test_parts_of_unequal_size_are_an_error():
    with pytest.raises(ValueError, match="7 examples per device cannot be cut into 2 parts"):
        part(np.zeros(7), 0, 2)


class Optimizer(keras.optimizers.SGD):
    pass


def test_the_collector_passes_for_the_optimizer_and_keeps_gradients():
    optimizer = Optimizer(0.25)
    collector = GradientCollector(optimizer)
    assert isinstance(collector, Optimizer)
    assert float(keras.ops.convert_to_numpy(collector.learning_rate)) == 0.25
    first, second = keras.Variable([1.0]), keras.Variable([1.0])
    collector.apply_gradients([(np.ones(1, "float32"), first), (None, second)])
    grads, variables = collector.take()
    assert [numbers(g) for g in grads] == [[1.0]] and variables[0] is first
    assert numbers(first) == [1.0]


def test_a_step_applies_gradients_exactly_once():
    collector = GradientCollector(Optimizer(0.1))
    variable = keras.Variable([1.0])
    with pytest.raises(RuntimeError, match="has to apply gradients"):
        collector.take()
    collector.apply([np.ones(1, "float32")], [variable])
    with pytest.raises(RuntimeError, match="only once"):
        collector.apply([np.ones(1, "float32")], [variable])
