import keras
import numpy as np
import pytest

from hortus.engine import loss_scale, value_and_grad


def number(value):
    return float(keras.ops.convert_to_numpy(value))


def make(scale="dynamic", variable=None, **options):
    variable = variable or keras.Variable(1.0)
    inner = keras.optimizers.SGD(1.0, **options)
    optimizer = loss_scale.scale_losses(inner, scale)
    optimizer.build([variable])
    return optimizer, variable


def step(optimizer, variable, slope):
    """One step down a line, inside of a functional step on JAX as in training."""

    def run():
        _, grads = value_and_grad(lambda: slope * variable, [variable], optimizer)
        optimizer.apply_gradients(zip(grads, [variable], strict=True))

    if keras.backend.backend() == "tensorflow":
        run()
        return
    state = [variable, *optimizer.variables]
    with keras.StatelessScope(state_mapping=[(v, v.value) for v in state]) as scope:
        run()
        new = [scope.get_current_value(v) for v in state]
    for v, value in zip(state, new, strict=True):
        v.assign(value)


@pytest.mark.parametrize("scale", [None, "dynamic", 128.0])
def test_a_step_is_that_of_the_true_loss(scale):
    optimizer, variable = make(scale)
    step(optimizer, variable, 0.25)
    assert number(variable) == 0.75  # exactly: scales are powers of two
    assert number(optimizer.dynamic_scale) == (128.0 if scale == 128.0 else 2**15)
    assert number(optimizer.iterations) == 1


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_an_overflow_skips_the_step_and_halves_the_scale(bad):
    optimizer, variable = make()
    step(optimizer, variable, bad)
    assert number(variable) == 1.0 and number(optimizer.iterations) == 0
    assert number(optimizer.dynamic_scale) == 2**14
    step(optimizer, variable, 0.5)
    assert number(variable) == 0.5 and number(optimizer.iterations) == 1


def test_a_fixed_scale_skips_nothing():
    optimizer, variable = make(128.0)
    step(optimizer, variable, np.inf)
    assert number(variable) == -np.inf and number(optimizer.dynamic_scale) == 128.0


def test_the_scale_grows_after_so_many_good_steps():
    variable = keras.Variable(1.0)
    optimizer = loss_scale.LossScaleOptimizer(keras.optimizers.SGD(0.1), dynamic_growth_steps=2)
    optimizer.build([variable])
    scales = []
    for slope in (0.5, 0.5, 0.5, np.inf, 0.5, 0.5):
        step(optimizer, variable, slope)
        scales.append(np.log2(number(optimizer.dynamic_scale)))
    assert scales == [15, 16, 16, 15, 15, 16]


def test_clipping_sees_true_gradients():
    optimizer, variable = make(clipnorm=0.125)
    step(optimizer, variable, 0.25)
    assert number(variable) == 0.875


@pytest.mark.parametrize("unscale", [False, True])
def test_a_step_may_scale_and_unscale_itself(unscale):
    optimizer, variable = make()
    scaled = optimizer.get_scaled_loss(keras.ops.ones(()) * 0.25)
    assert number(scaled) == 0.25 * 2**15
    grads = [keras.ops.ones(()) * 0.25 * 2**15, None]
    if unscale:
        grads = optimizer.get_unscaled_gradients(grads)
        assert number(grads[0]) == 0.25 and grads[1] is None
    optimizer.apply_gradients(zip(grads[:1], [variable], strict=True))
    assert number(variable) == 0.75


def test_a_loss_may_be_a_function():
    optimizer, _ = make(8.0)
    assert number(optimizer.get_scaled_loss(lambda: keras.ops.ones(()))()) == 8.0


def test_gradients_of_an_unscaled_loss_are_an_error():
    optimizer, variable = make()
    with pytest.raises(RuntimeError, match="get_scaled_loss"):
        optimizer.apply_gradients([(keras.ops.ones(()), variable)])


def test_the_config_makes_the_same_optimizer():
    optimizer, _ = make(64.0)
    config = keras.optimizers.serialize(optimizer)
    again = keras.optimizers.deserialize(config)
    assert isinstance(again, loss_scale.LossScaleOptimizer)
    assert again.initial_scale == 64.0 and again.dynamic is False
    assert isinstance(again, keras.optimizers.LossScaleOptimizer)
