import keras
import numpy as np
import pytest

from hortus.optimization.sgd import SGD


@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}])
def test_updates_are_those_of_keras(settings):
    rng = np.random.default_rng(0)
    start = rng.normal(size=(5, 3)).astype("float32")
    variables = [keras.Variable(start, name=name) for name in ("ours", "theirs")]
    optimizers = [SGD(0.1, **settings), keras.optimizers.SGD(0.1, **settings)]
    for optimizer, variable in zip(optimizers, variables, strict=True):
        optimizer.build([variable])
    for _ in range(4):
        gradient = keras.ops.convert_to_tensor(rng.normal(size=(5, 3)).astype("float32"))
        for optimizer, variable in zip(optimizers, variables, strict=True):
            optimizer.apply([gradient], [variable])
    ours, theirs = (keras.ops.convert_to_numpy(variable) for variable in variables)
    assert not np.allclose(ours, start)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)  # another order of the same sums


def test_settings_survive_serialisation():
    made = keras.optimizers.deserialize(keras.optimizers.serialize(SGD(0.1, momentum=0.5)))
    assert type(made) is SGD and made.momentum == 0.5
