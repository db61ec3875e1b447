import json

import keras
import numpy as np
import pytest

from hortus import optimization
from hortus.optimization import lr_schedule
from hortus.testing import reference_dir

# The stored values are the float32 output of the existing system, run eagerly.
EAGER_RTOL = 1e-6
# JAX rounds the cosine of an array differently than that of a number; one number at a time it meets
# EAGER_RTOL as TensorFlow does, but takes minutes here. Relative to the peak of a schedule.
JAX_ARRAY_ATOL = 1e-7
# Compilers multiply with reciprocals and fuse, which moves a rate by a few roundings of its peak.
COMPILED_ATOL = 3e-7

STEPS = np.array([1, 31, 5000])


def build(learning_rate, warmup=None):
    sections = {"optimizer": {"type": "sgd"}, "learning_rate": learning_rate}
    if warmup:
        sections["warmup"] = warmup
    config = optimization.OptimizationConfig(sections)
    return optimization.OptimizerFactory(config).build_learning_rate()


def restarts(key):
    """Settings that a key like `first30_t2_m.5_offset10/warmup_none` stands for."""
    name, warmup = key.split("/")[1:]
    fields = {"initial_learning_rate": 0.1, "first_decay_steps": 30}
    known = {"t1": ("t_mul", 1.0), "t2": ("t_mul", 2.0), "m.5": ("m_mul", 0.5), "m1": ("m_mul", 1)}
    known |= {"alpha.1": ("alpha", 0.1), "offset10": ("offset", 10)}
    for part in name.split("_"):
        if part not in ("defaults", "first30"):
            field, value = known[part]
            fields[field] = value
    linear = {"type": "linear", "linear": {"warmup_steps": 10}}
    choice = {"type": "cosine_restarts", "cosine_restarts": fields}
    return choice, None if warmup == "warmup_none" else linear


def golden_cases():
    """(key, schedule, steps, expected)."""
    golden = reference_dir() / "golden"
    settings = json.loads((golden / "lr_schedules_settings.json").read_text())
    stored = np.load(golden / "lr_schedules.npz")
    for key in sorted(set(stored.files) - {"steps"}):
        case = settings[key]
        yield key, build(case["learning_rate"], case["warmup"]), stored["steps"], stored[key]
    stored = np.load(golden / "lr_cosine_restarts_sourcetree.npz")
    for key in sorted(set(stored.files) - {"steps"}):
        yield key, build(*restarts(key)), stored["steps"], stored[key]


def compiled(function):
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, input_signature=[tf.TensorSpec([], tf.int64)])


@pytest.mark.filterwarnings("ignore:learning_rate.step_cosine")
def test_values_equal_the_golden_ones():
    is_jax = keras.backend.backend() == "jax"
    count = 0
    for key, schedule, steps, expected in golden_cases():
        if is_jax and "linear_10_from0" not in key:
            continue  # where operations one by one are slow
        rates = lr_schedule.rate_at(schedule, steps.astype("int32"))
        rates = np.broadcast_to(keras.ops.convert_to_numpy(rates), steps.shape)
        assert np.isfinite(rates).all(), key
        known = ~np.isnan(expected)
        atol = JAX_ARRAY_ATOL * np.max(expected[known]) if is_jax else 0.0
        np.testing.assert_allclose(rates[known], expected[known], EAGER_RTOL, atol, err_msg=key)
        count += 1
    assert count == (24 if is_jax else 128)


@pytest.mark.filterwarnings("ignore:learning_rate.step_cosine")
def test_compiled_values_equal_the_golden_ones():
    # Each kind of schedule with one warmup: compiling takes most of the time.
    cases = {key.rsplit("/", 1)[0]: case for key, *case in golden_cases()}
    assert len(cases) == 24
    for key, (schedule, steps, expected) in cases.items():
        function = compiled(lambda step, schedule=schedule: lr_schedule.rate_at(schedule, step))
        dtype = "int32" if keras.backend.backend() == "jax" else "int64"
        rates = np.array([float(function(np.asarray(step, dtype))) for step in steps])
        known = ~np.isnan(expected)
        atol = COMPILED_ATOL * np.max(expected[known])
        np.testing.assert_allclose(rates[known], expected[known], EAGER_RTOL, atol, err_msg=key)


def every_schedule(has_warmup):
    table = {"boundaries": [0, 30, 100], "values": [0.1, 0.05, 0.01]}
    decay = {"initial_learning_rate": 0.1, "decay_steps": 100}
    fields = {
        "constant": {},
        "stepwise": {"boundaries": [30, 100], "values": [0.1, 0.05, 0.01], "offset": 3},
        "exponential": {**decay, "decay_rate": 0.9, "offset": 3},
        "polynomial": {**decay, "offset": 3},
        "cosine": {**decay, "offset": 3},
        "cosine_restarts": {"initial_learning_rate": 0.1, "first_decay_steps": 30},
        "power": {"initial_learning_rate": 0.1},
        "power_linear": {"initial_learning_rate": 0.1, "total_decay_steps": 100, "offset": 3},
        "power_with_offset": {"initial_learning_rate": 0.1, "offset": 3},
        "step_cosine_with_offset": {**table, "offset": 3},
    }
    assert set(fields) == set(optimization.LrConfig.choices())
    warmups = [
        {"type": "linear", "linear": {"warmup_steps": 10, "warmup_learning_rate": 0.01}},
        {"type": "polynomial", "polynomial": {"warmup_steps": 10, "power": 2.0}},
    ]
    for key, value in fields.items():
        for warmup in warmups if has_warmup else [None]:
            yield build({"type": key, key: value}, warmup)
    yield lr_schedule.InverseTimeDecay(build({"type": "cosine", "cosine": decay}), 0.01)


def test_schedules_take_arrays_of_steps():
    for schedule in every_schedule(has_warmup=False):
        if callable(schedule):
            at_once = keras.ops.convert_to_numpy(schedule(STEPS.astype("int32")))
            one_by_one = [float(schedule(int(step))) for step in STEPS]
            atol = JAX_ARRAY_ATOL * max(one_by_one)
            np.testing.assert_allclose(at_once, one_by_one, EAGER_RTOL, atol)


def test_schedules_survive_serialisation():
    count = 0
    for schedule in every_schedule(has_warmup=True):
        data = json.loads(json.dumps(keras.optimizers.schedules.serialize(schedule)))
        again = keras.optimizers.schedules.deserialize(data)
        assert again.get_config() == schedule.get_config()
        # In the warmup the schedule counts through its target; on JAX each value takes a while.
        assert float(again(5)) == float(schedule(5))
        count += 1
    assert count == 21


def test_an_optimizer_with_a_schedule_survives_serialisation():
    schedule = lr_schedule.LinearWarmup(lr_schedule.PowerDecay(0.1), 10)
    optimizer = keras.optimizers.SGD(schedule)
    again = keras.optimizers.SGD.from_config(optimizer.get_config())
    assert float(again.learning_rate) == float(optimizer.learning_rate)


def test_a_schedule_reads_the_step_of_the_optimizer():
    optimizer = keras.optimizers.SGD(lr_schedule.LinearWarmup(1.0, 4))
    variable = keras.Variable(0.0)
    optimizer.build([variable])
    moves = []
    for _ in range(5):
        before = float(variable.numpy())
        optimizer.apply([keras.ops.ones(())], [variable])
        moves.append(before - float(variable.numpy()))
    np.testing.assert_allclose(moves, [0.0, 0.25, 0.5, 0.75, 1.0], atol=1e-6)


def test_equal_periods_stay_exact_for_millions_of_steps():
    fields = {"initial_learning_rate": 0.1, "first_decay_steps": 1000, "t_mul": 1.0}
    schedule = build({"type": "cosine_restarts", "cosine_restarts": fields})
    for step in (300, 5_000_300, 100_000_300):
        assert float(schedule(step)) == float(schedule(300))
    fields |= {"m_mul": 0.5}
    halved = build({"type": "cosine_restarts", "cosine_restarts": fields})
    assert float(halved(2300)) == pytest.approx(0.25 * float(schedule(300)), rel=1e-6)


def test_step_cosine_holds_its_last_value():
    schedule = lr_schedule.StepCosineDecayWithOffset([0, 50, 90], [0.1, 0.05, 0.01], offset=5)
    np.testing.assert_allclose([float(schedule(step)) for step in (95, 96, 10**6)], 0.01)
    # A cosine has no corner at its end: the last steps are already close.
    assert float(schedule(94)) == pytest.approx(0.01, abs=1e-4)


def test_step_cosine_says_how_many_values_it_needs():
    with pytest.raises(ValueError, match=r"2 boundaries .* and 3 values"):
        lr_schedule.StepCosineDecayWithOffset([0, 50], [0.1, 0.05, 0.01])


def test_power_and_linear_without_a_linear_part():
    schedule = lr_schedule.PowerAndLinearDecay(0.1, 100, power=0.0, linear_decay_fraction=0.0)
    rates = [float(schedule(step)) for step in (0, 50, 99, 100, 101)]
    np.testing.assert_allclose(rates, [0.1, 0.1, 0.1, 0.0, 0.0])


def test_steps_beyond_the_range_of_exact_float32_are_told_apart():
    edge = 2**24 + 1  # rounds to 2**24 as a float32
    schedule = lr_schedule.WithOffset(
        keras.optimizers.schedules.PiecewiseConstantDecay([edge - 1, edge], [3.0, 2.0, 1.0]), 0
    )
    assert [float(schedule(edge + i)) for i in (-1, 0, 1)] == [3.0, 2.0, 1.0]
    warmup = lr_schedule.LinearWarmup(schedule, edge, warmup_learning_rate=-1.0)
    assert float(warmup(edge)) == 2.0
    table = lr_schedule.StepCosineDecayWithOffset([0, 10], [1.0, 0.0], offset=edge)
    assert float(table(edge + 5)) == pytest.approx(0.5, abs=1e-6)
