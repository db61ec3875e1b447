import dataclasses
import json

import keras
import numpy as np
import pytest
from keras import ops

from hortus import hyperparams, optimization, registry
from hortus.optimization import lr_schedule, optimizer_factory
from hortus.optimization.gradient_transformation import GradientTransformation
from hortus.testing import reference_dir, run_under_engine

# Five float32 updates of size 0.1, apart from the last bits of a sum.
ATOL = 1e-6
# Keras takes 1 - beta_2 from a Python float in one place and from a float32 in the other, and puts
# epsilon under RMSprop's root: both count in the first steps, when the moments are young.
ATOL_BY_TYPE = {"rmsprop": 1e-5, "adam": 5e-6, "adamw": 5e-6}


def factory(optimizer, learning_rate=None, **sections):
    rate = {"type": "constant", "constant": {"learning_rate": 0.1}}
    sections |= {"optimizer": optimizer, "learning_rate": learning_rate or rate}
    return optimization.OptimizerFactory(optimization.OptimizationConfig(sections))


def build(key, fields=None, rate=0.1, **arguments):
    made = factory({"type": key, key: fields or {}})
    return made.build_optimizer(rate, **arguments)


class Regression:
    """loss = scale * mean((X @ kernel + bias - Y) ** 2), from the weights of the fixtures."""

    def __init__(self):
        stored = np.load(reference_dir() / "golden" / "optimizers.npz")
        self.inputs, self.targets = stored["X"], stored["Y"]
        with keras.name_scope("dense"):
            self.kernel = keras.Variable(stored["kernel0"], name="kernel")
            self.bias = keras.Variable(stored["bias0"], name="bias")

    @property
    def variables(self):
        return [self.kernel, self.bias]

    def gradients(self, scale=1.0):
        error = ops.matmul(self.inputs, self.kernel) + self.bias - self.targets
        error = error * (2.0 * scale / self.targets.size)
        return [ops.matmul(ops.transpose(self.inputs), error), ops.sum(error, axis=0)]

    def train(self, optimizer, steps=5, scale=1.0, is_compiled=False):
        """Kernel and bias after each step."""

        def step():
            optimizer.apply_gradients(zip(self.gradients(scale), self.variables, strict=True))

        if is_compiled:
            optimizer.build(self.variables)
            step = compiled(step, [*self.variables, *optimizer.variables])
        kernels, biases = [], []
        for _ in range(steps):
            step()
            kernels.append(self.kernel.numpy())
            biases.append(self.bias.numpy())
        return np.stack(kernels), np.stack(biases)


def compiled(step, variables):
    """The step, compiled as the engine does: on JAX as a pure function of all variables."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.function(step)
    import jax

    @jax.jit
    def pure(state):
        with keras.StatelessScope(list(zip(variables, state, strict=True))) as scope:
            step()
        return [scope.get_current_value(v) for v in variables]

    def run():
        for variable, value in zip(variables, pure([v.value for v in variables]), strict=True):
            variable.assign(value)

    return run


# JAX is only ever run compiled.
@pytest.mark.parametrize(
    "is_compiled", [True] if keras.backend.backend() == "jax" else [False, True]
)
def test_updates_equal_the_golden_ones(is_compiled):
    golden = reference_dir() / "golden"
    cases = json.loads((golden / "optimizers.json").read_text())["cases"]
    stored = np.load(golden / "optimizers.npz")
    cases = {name: case for name, case in cases.items() if isinstance(case, dict)}
    assert len(cases) == 36
    for name, case in cases.items():
        optimizer = build(case["type"], case["cfg"], case["lr"])
        kernels, biases = Regression().train(
            optimizer, scale=case["loss_scale_factor"], is_compiled=is_compiled
        )
        atol = ATOL_BY_TYPE.get(case["type"], ATOL)
        np.testing.assert_allclose(kernels, stored[f"{name}/kernel"], 0, atol, err_msg=name)
        np.testing.assert_allclose(biases, stored[f"{name}/bias"], 0, atol, err_msg=name)


def test_every_type_is_built_and_learns():
    for key in optimization.OptimizerConfig.choices():
        if key == "slide":
            continue
        problem, optimizer = Regression(), build(key)
        before = np.mean(np.square(problem.gradients()[0]))
        problem.train(optimizer, steps=8)
        assert np.mean(np.square(problem.gradients()[0])) < before, key


def test_every_optimizer_survives_serialisation():
    fields = {"adamw": {"exclude_from_weight_decay": ["bias"], "weight_decay_rate": 0.1}}
    fields["lars"] = fields["lamb"] = fields["adamw"]
    fields["adafactor"] = {"beta1": 0.9, "weight_decay": 0.1, "include_in_weight_decay": "kernel"}
    for key in optimization.OptimizerConfig.choices():
        if key == "slide":
            continue
        optimizer = build(key, fields.get(key), lr_schedule.LinearWarmup(0.1, 2))
        data = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
        again = keras.optimizers.deserialize(data)
        assert again.get_config() == optimizer.get_config(), key
        if key in fields:
            ours, theirs = Regression().train(optimizer, 2), Regression().train(again, 2)
            np.testing.assert_array_equal(ours[0], theirs[0], err_msg=key)


def test_slide_is_loaded_but_not_built():
    with pytest.raises(hyperparams.ConfigError, match="'slide' can be loaded but not built"):
        build("slide")


@pytest.mark.parametrize("norm", ["clipnorm", "global_clipnorm"])
def test_clip_by_value_comes_before_a_norm(norm):
    problem = Regression()
    start = [v.numpy() for v in problem.variables]
    clipped = [np.clip(ops.convert_to_numpy(g), -0.3, 0.3) for g in problem.gradients(10.0)]
    norms = [np.sqrt(np.sum(np.square(g))) for g in clipped]
    if norm == "global_clipnorm":
        norms = [np.sqrt(np.sum(np.square(norms)))] * 2
    assert min(norms) > 0.5
    problem.train(build("sgd", {"clipvalue": 0.3, norm: 0.5}), steps=1, scale=10.0)
    for variable, before, gradient, size in zip(
        problem.variables, start, clipped, norms, strict=True
    ):
        expected = before - 0.1 * gradient * 0.5 / size
        np.testing.assert_allclose(variable.numpy(), expected, 1e-6, 1e-7)


def test_both_norms_are_an_error_that_says_so():
    with pytest.raises(hyperparams.ConfigError, match=r"clipnorm .* and global_clipnorm .* both"):
        build("adam", {"clipnorm": 1.0, "global_clipnorm": 1.0})


def test_decay_of_sgd_divides_constant_and_schedule():
    schedule = keras.optimizers.schedules.PolynomialDecay(0.1, 10)
    for rate in (0.1, schedule):
        optimizer = build("sgd", {"decay": 0.5}, rate)
        Regression().train(optimizer, steps=2)
        expected = float(lr_schedule.rate_at(rate, 2)) / (1 + 0.5 * 2)
        assert float(optimizer.learning_rate) == pytest.approx(expected, rel=1e-6)


def test_a_whole_number_is_a_learning_rate():
    assert float(build("sgd", rate=1).learning_rate) == 1.0


def test_aggregator_and_transformers_come_in_order_and_postprocessor_last():
    calls = []

    def step(name):
        def transform(grads_and_vars):
            calls.append(name)
            return [(2.0 * gradient, variable) for gradient, variable in grads_and_vars]

        return transform

    problem = Regression()
    start, gradient = problem.kernel.numpy(), ops.convert_to_numpy(problem.gradients()[0])
    optimizer = build(
        "sgd",
        gradient_aggregator=step("aggregator"),
        gradient_transformers=[step("first"), step("second")],
        postprocessor=lambda made: calls.append(type(made)) or made,
        use_legacy_optimizer=True,
    )
    problem.train(optimizer, steps=1)
    assert calls == [GradientTransformation, "aggregator", "first", "second"]
    np.testing.assert_allclose(problem.kernel.numpy(), start - 0.1 * 8 * gradient, 1e-5)


def test_the_average_of_weights_is_around_everything():
    ema = {"average_decay": 0.9, "start_step": 3, "trainable_weights_only": False}
    made = factory({"type": "sgd"}, ema=ema)
    seen = []
    optimizer = made.build_optimizer(0.1, postprocessor=lambda made: seen.append(made) or made)
    assert seen == [optimizer]
    assert isinstance(optimizer, optimization.ExponentialMovingAverage)
    settings = optimizer.get_config()
    assert {key: settings[key] for key in ema} == ema
    assert isinstance(optimizer.inner_optimizer, keras.optimizers.SGD)


def test_a_constant_without_warmup_is_a_float():
    assert factory({"type": "sgd"}).build_learning_rate() == 0.1


def test_no_warmup_section_is_no_warmup():
    assert factory({"type": "sgd"}, warmup=None).build_learning_rate() == 0.1


def test_stepwise_without_boundaries_is_its_one_value():
    rate = {"type": "stepwise", "stepwise": {"boundaries": [], "values": [0.3]}}
    assert factory({"type": "sgd"}, rate).build_learning_rate() == 0.3


def test_step_cosine_that_does_not_begin_at_zero_warns():
    fields = {"boundaries": [20, 50], "values": [0.1, 0.05]}
    rate = {"type": "step_cosine_with_offset", "step_cosine_with_offset": fields}
    with pytest.warns(hyperparams.ConfigWarning, match="boundaries begin at 20"):
        factory({"type": "sgd"}, rate).build_learning_rate()


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({}, "optimizer.type must be set, to one of: sgd, sgd_experimental,"),
        ({"optimizer": {"type": "sgd"}}, "learning_rate.type must be set, to one of: constant,"),
        ({"optimizer": None}, "optimizer.type must be set"),
    ],
)
def test_types_must_be_chosen(sections, message):
    with pytest.raises(hyperparams.ConfigError, match=message):
        optimization.OptimizerFactory(optimization.OptimizationConfig(sections))


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"learning_rate": {"type": "cosine", "cosine": {"alpha": 0.1}}},
            "learning_rate.cosine: initial_learning_rate and decay_steps must be set",
        ),
        (
            {"learning_rate": {"type": "stepwise", "stepwise": {"boundaries": [1], "values": [1]}}},
            "learning_rate.stepwise: expected one value more than boundaries",
        ),
        (
            {"learning_rate": {"type": "constant"}, "warmup": {"type": "linear"}},
            "warmup.linear: warmup_steps must be set",
        ),
    ],
)
def test_what_a_learning_rate_lacks_is_said(sections, message):
    config = optimization.OptimizationConfig({"optimizer": {"type": "sgd"}, **sections})
    with pytest.raises(hyperparams.ConfigError, match=message):
        optimization.OptimizerFactory(config).build_learning_rate()


@dataclasses.dataclass
class HalfConfig(optimization.BaseOptimizerConfig):
    share: float = 0.5


@dataclasses.dataclass
class SawConfig(hyperparams.Config):
    period: int = 10


@dataclasses.dataclass
class OwnOptimizer(optimization.OptimizerConfig):
    half: HalfConfig = dataclasses.field(default_factory=HalfConfig)


@dataclasses.dataclass
class OwnRate(optimization.LrConfig):
    saw: SawConfig = dataclasses.field(default_factory=SawConfig)


@dataclasses.dataclass
class OwnWarmup(optimization.WarmupConfig):
    saw: SawConfig = dataclasses.field(default_factory=SawConfig)


@dataclasses.dataclass
class OwnOptimization(optimization.OptimizationConfig):
    optimizer: OwnOptimizer = dataclasses.field(default_factory=OwnOptimizer)
    learning_rate: OwnRate = dataclasses.field(default_factory=OwnRate)
    warmup: OwnWarmup = dataclasses.field(default_factory=OwnWarmup)


@pytest.fixture
def own_types(monkeypatch):
    """Tables of their own for the test, so that it registers for itself alone."""
    for name in ("_OPTIMIZERS", "_SCHEDULES", "_WARMUPS"):
        table = registry.Registry("thing")
        table |= getattr(optimizer_factory, name)
        monkeypatch.setattr(optimizer_factory, name, table)
    config = {"type": "half", "half": {"share": 0.25, "clipvalue": 2.0}}
    return OwnOptimization({"optimizer": config, "learning_rate": {"type": "saw"}})


def test_own_optimizer_schedule_and_warmup(own_types):
    def half(learning_rate, share, **clips):
        assert clips == {"clipvalue": 2.0}
        return keras.optimizers.SGD(learning_rate * share, **clips)

    optimization.register_optimizer_cls("half", half)
    optimization.register_schedule_cls("saw", lambda period: 1.0 / period)

    @optimization.register_warmup_cls("saw")
    def rise(rate, period):
        return rate * period

    made = optimization.OptimizerFactory(own_types)
    assert made.build_learning_rate() == pytest.approx(0.1)
    assert float(made.build_optimizer(0.4).learning_rate) == pytest.approx(0.1)
    own_types.override({"warmup": {"type": "saw"}})
    assert optimization.OptimizerFactory(own_types).build_learning_rate() == pytest.approx(1.0)


def test_what_is_not_registered_is_said_with_near_names(own_types):
    made = optimization.OptimizerFactory(own_types)
    with pytest.raises(hyperparams.ConfigError, match=r"learning_rate.type: unknown thing 'saw'"):
        made.build_learning_rate()
    optimization.register_optimizer_cls("halve", keras.optimizers.SGD)
    with pytest.raises(
        hyperparams.ConfigError, match=r"unknown thing 'half'; did you mean .*halve"
    ):
        made.build_optimizer(0.1)


@pytest.mark.parametrize(
    ("register", "key"),
    [
        (optimization.register_optimizer_cls, "sgd"),
        (optimization.register_schedule_cls, "cosine"),
        (optimization.register_warmup_cls, "linear"),
    ],
)
def test_registering_twice_raises(register, key):
    with pytest.raises(registry.RegistryError, match=f"{key!r} is registered twice"):
        register(key, keras.optimizers.SGD)


def test_every_type_of_the_settings_has_a_builder():
    assert set(optimizer_factory._OPTIMIZERS) == set(optimization.OptimizerConfig.choices())
    assert set(optimizer_factory._SCHEDULES) == set(optimization.LrConfig.choices())
    assert set(optimizer_factory._WARMUPS) == set(optimization.WarmupConfig.choices())


def test_the_package_offers_every_name_that_it_lists():
    for name in optimization.__all__:
        assert getattr(optimization, name) is not None
    assert optimization.lr_schedule is lr_schedule
    with pytest.raises(AttributeError, match="no attribute 'Optimiser'"):
        optimization.Optimiser  # noqa: B018


TWO_REPLICAS = """
import numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import keras
from hortus import optimization

CASES = {
    "lars": {"weight_decay_rate": 0.1, "exclude_from_weight_decay": ["bias"]},
    "lamb": {"weight_decay_rate": 0.1, "exclude_from_weight_decay": ["bias"]},
    "adamw": {"weight_decay_rate": 0.1, "exclude_from_weight_decay": ["bias"],
              "gradient_clip_norm": 0.0},  # the sum comes before the clip in the engine only
    "adafactor": {"weight_decay": 0.1, "include_in_weight_decay": "kernel", "beta1": 0.9,
                  "min_dim_size_to_factor": 2},
}

def run(strategy, replicas, key, fields):
    config = optimization.OptimizationConfig(
        {"optimizer": {"type": key, key: fields}, "learning_rate": {"type": "constant"}}
    )
    with strategy.scope():
        kernel = keras.Variable(np.linspace(0.1, 1, 6, dtype="f").reshape(2, 3), name="kernel")
        bias = keras.Variable([0.5, 0.2, 0.1], name="bias")
        optimizer = optimization.OptimizerFactory(config).build_optimizer(0.1)
        optimizer.build([kernel, bias])

    @tf.function
    def step():
        def on_replica():  # whose gradients are summed
            pairs = [(keras.ops.cos(v) / replicas, v) for v in (kernel, bias)]
            optimizer.apply_gradients(pairs)
        strategy.run(on_replica)

    for _ in range(3):
        step()
    return [kernel.numpy(), bias.numpy()]

mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
for key, fields in CASES.items():
    two = run(mirrored, 2, key, fields)
    one = run(tf.distribute.get_strategy(), 1, key, fields)
    for x, y in zip(two, one):
        np.testing.assert_allclose(x, y, 1e-5, err_msg=key)
print("alike")
"""


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a TensorFlow strategy")
def test_our_optimizers_on_two_replicas_equal_one():
    assert "alike" in run_under_engine("tensorflow", TWO_REPLICAS)
