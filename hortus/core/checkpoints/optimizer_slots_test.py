import keras
import numpy as np
import pytest

from hortus import testing
from hortus.core.checkpoints.layout import lay_out
from hortus.core.checkpoints.names import named_variables
from hortus.optimization import ema


def test_on_jax():
    testing.run_under_engine(
        "jax", __file__, select="moving_average or one_path or named_after_their or Adafactor"
    )


def make_model():
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(2, name="head")])
    model.build((None, 4))
    return model


def names_with(optimizer, weights=None):
    model = make_model()
    optimizer.build(weights(model) if weights else model.trainable_variables)
    return set(lay_out({"optimizer": optimizer, "model": model}).variables), model


WEIGHTS = ["dense-0/kernel", "dense-0/bias", "head/kernel", "head/bias"]


def slots(name, prefix="optimizer"):
    return {f"{prefix}/{name}/model/layers/{weight}" for weight in WEIGHTS}


def of_optimizer(names):
    return {name for name in names if name.startswith("optimizer/")}


def test_slots_are_named_after_their_weights():
    names, _ = names_with(keras.optimizers.Adam(0.1))
    expected = {"optimizer/iterations"} | slots("momentum") | slots("velocity")
    assert of_optimizer(names) == expected


def test_the_average_of_keras_and_wrapped_optimizers():
    inner = keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True)
    names, _ = names_with(keras.optimizers.LossScaleOptimizer(inner))
    inside = "optimizer/inner_optimizer"
    assert of_optimizer(names) >= {
        "optimizer/step_counter",
        "optimizer/dynamic_scale",
        f"{inside}/iterations",
        *slots("momentum", inside),
        *slots("average", inside),
    }


OPTIMIZERS = ["SGD", "Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Adagrad", "Adadelta", "Ftrl"]
OPTIMIZERS += ["Lion", "Lamb", "Adafactor", "Muon"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_slot_of_every_optimizer_is_named_after_a_weight(name):
    arguments = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(keras.optimizers, name)(0.1, **arguments)
    names, model = names_with(optimizer)
    found = of_optimizer(names)
    # All of them but the learning rate, each under a name of its own.
    assert len(found) == len(optimizer.variables) - 1
    for path in found:
        is_slot = any(f"/model/layers/{weight}" in path for weight in WEIGHTS)
        assert is_slot or path in ("optimizer/iterations", "optimizer/u_product"), path
    # And each under the name of its own weight: the shapes that belong to a weight are its own.
    by_name = named_variables(optimizer, {id(w): f"m/{i}" for i, w in enumerate(model.weights)})
    for path, named in by_name.items():
        if path.startswith(("momentum/", "velocity/", "accumulator/")):
            weight = model.weights[int(path.rpartition("/")[2])]
            assert tuple(named.variable.shape) == tuple(weight.shape)


def test_the_learning_rate_is_a_setting_and_not_state():
    optimizer = keras.optimizers.SGD(0.1)
    assert len(optimizer.variables) == 2
    assert set(named_variables(optimizer)) == {"iterations"}


def test_a_moving_average_of_other_weights_than_the_trained_ones():
    model = make_model()
    optimizer = ema.ExponentialMovingAverage(
        keras.optimizers.SGD(0.1, momentum=0.9), trainable_weights_only=False
    )
    model.layers[0].trainable = False
    optimizer.shadow_copy(model)
    optimizer.build(model.trainable_variables)
    names = of_optimizer(lay_out({"optimizer": optimizer, "model": model}).variables)
    assert names == slots("average") | {
        "optimizer/updates",
        "optimizer/inner_optimizer/iterations",
        "optimizer/inner_optimizer/momentum/model/layers/head/kernel",
        "optimizer/inner_optimizer/momentum/model/layers/head/bias",
    }


def test_the_order_of_weights_does_not_matter():
    def values(weights):
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        model = make_model()
        optimizer.build(weights(model))
        for weight in model.trainable_variables:
            slot = next(s for s in optimizer.variables if s.name == _flat(weight) + "_momentum")
            slot.assign(np.full(slot.shape, float(np.prod(slot.shape))))
        found = lay_out({"model": model, "optimizer": optimizer}).variables
        return {
            name: named.variable.numpy().tolist()
            for name, named in found.items()
            if name.startswith("optimizer/momentum")
        }

    forwards = values(lambda model: model.trainable_variables)
    backwards = values(lambda model: model.trainable_variables[::-1])
    assert len(forwards) == 4
    assert forwards == backwards


def _flat(weight):
    return weight.path.replace("/", "_")


def test_weights_of_one_path_are_told_apart():
    # Two models of a run may well both have a layer "conv".
    models = [keras.Sequential([keras.layers.Dense(2, name="conv")], name="part") for _ in range(2)]
    for model in models:
        model.build((None, 2))
    assert models[0].weights[0].path == models[1].weights[0].path
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(models[0].trainable_variables + models[1].trainable_variables)
    for index, slot in enumerate(optimizer.variables[2:]):
        slot.assign(np.full(slot.shape, float(index)))
    layout = lay_out({"a": models[0], "b": models[1], "optimizer": optimizer})
    found = {n: v.variable.numpy().flat[0] for n, v in layout.variables.items() if "momentum" in n}
    assert found == {
        "optimizer/momentum/a/layers/conv/kernel": 0,
        "optimizer/momentum/a/layers/conv/bias": 1,
        "optimizer/momentum/b/layers/conv/kernel": 2,
        "optimizer/momentum/b/layers/conv/bias": 3,
    }


def test_an_optimizer_alone_is_named_by_index():
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(make_model().trainable_variables)
    expected = {"iterations"} | {f"momentums/{index}" for index in range(4)}
    assert set(named_variables(optimizer)) == expected


def test_slots_that_are_lists():
    class Factored(keras.optimizers.SGD):
        def build(self, variables):
            super().build(variables)
            self._factors = [
                [self.add_variable((n,), name="factor") for n in variable.shape]
                for variable in variables
            ]

    names, _ = names_with(Factored(0.1))
    assert of_optimizer(names) == {
        "optimizer/iterations",
        "optimizer/factors/model/layers/dense-0/kernel/0",
        "optimizer/factors/model/layers/dense-0/kernel/1",
        "optimizer/factors/model/layers/dense-0/bias/0",
        "optimizer/factors/model/layers/head/kernel/0",
        "optimizer/factors/model/layers/head/kernel/1",
        "optimizer/factors/model/layers/head/bias/0",
    }


def test_two_slots_that_keras_names_alike():
    class Twice(keras.optimizers.SGD):
        def build(self, variables):
            super().build(variables)
            self._first = self.add_optimizer_variables(variables, "m")
            self._second = self.add_optimizer_variables(variables, "m")

    names, _ = names_with(Twice(0.1))
    assert of_optimizer(names) == {"optimizer/iterations"} | slots("first") | slots("second")
