"""Run on both engines."""

import types

import keras
import pytest

from hortus.core import compat
from hortus.core.runner import EvalRunner, TrainRunner


def number(value):
    return float(keras.ops.convert_to_numpy(value))


# ---- objects that train and evaluate ----------------------------------------------------------


class Plain:
    """A trainer and evaluator in the style of orbit."""

    poll = None

    def train(self, num_steps):
        return {"steps": num_steps}

    def evaluate(self, num_steps):
        self.poll()
        return {"batches": num_steps}


def test_plain_objects_train_and_evaluate():
    plain, asked = Plain(), []
    trainer, evaluator = compat.as_train_runner(plain), compat.as_eval_runner(plain)
    assert trainer.train(3) == {"steps": 3} and not trainer.splits_loops
    assert trainer.timing is None and trainer.first_bad_step is None
    assert trainer.find_divergence(3, "folder", suspect=1) is None
    trainer.after_restore()
    with trainer.keeping_data():
        pass
    evaluator.watch(lambda: asked.append(1))
    assert evaluator.evaluate(2) == {"batches": 2} and asked == [1]
    evaluator.after_restore()
    compat.as_eval_runner(types.SimpleNamespace(evaluate=None)).watch(print)  # needs none


def test_what_a_plain_object_has_is_used():
    calls = []

    def note(name):
        return lambda *args, **kwargs: calls.append((name, args, kwargs))

    plain = types.SimpleNamespace(
        train_part=note("part"),
        after_restore=note("restored"),
        find_divergence=note("find"),
        first_bad_step=7,
        timing="fast",
    )
    trainer = compat.as_train_runner(plain)
    assert trainer.splits_loops and trainer.first_bad_step == 7 and trainer.timing == "fast"
    trainer.train_part(2, first=True, last=False)
    trainer.after_restore()
    trainer.find_divergence(1, "x")
    assert [name for name, *_ in calls] == ["part", "restored", "find"]


def test_those_who_say_what_they_are_stay_as_they_are():
    class Mine(TrainRunner, EvalRunner):
        def evaluate(self, num_steps=-1):
            self.poll()
            return {}

    mine, asked = Mine(), []
    assert compat.as_train_runner(mine) is mine and compat.as_eval_runner(mine) is mine
    mine.evaluate()  # nobody watches
    mine.watch(lambda: asked.append(1))
    mine.evaluate()
    assert asked == [1]
    with pytest.raises(NotImplementedError, match="Mine has neither train nor train_part"):
        mine.train(1)
    with pytest.raises(NotImplementedError, match="EvalRunner has no evaluate"):
        compat.as_eval_runner(None).evaluate()


# ---- metrics ----------------------------------------------------------------------------------


class NameFirst(keras.metrics.Metric):
    """A metric as the guides of TensorFlow 2 wrote it."""

    def __init__(self, name="old"):
        super().__init__(name)


def test_a_metric_may_give_its_name_first():
    built = []

    def build():
        built.append(keras.metrics.Metric.__init__)
        typed = keras.metrics.Mean(name="mean", dtype="float16")
        return [typed, NameFirst()]

    typed, old = compat.build_metrics(build)
    assert (old.name, old.dtype) == ("old", "float32")
    assert (typed.name, typed.dtype) == ("mean", "float16")
    assert len(built) == 2 and keras.metrics.Metric.__init__ is built[0]


def test_nothing_is_bent_for_metrics_of_keras_3():
    original, seen = keras.metrics.Metric.__init__, []

    def build():
        seen.append(keras.metrics.Metric.__init__)
        return keras.metrics.Mean(name="mean")

    compat.build_metrics(build)
    assert seen == [original]


@pytest.mark.parametrize(
    "build",
    [
        lambda: keras.metrics.Mean(dtype="no_such_type", name="a"),
        lambda: int("x"),
        lambda: keras.metrics.MeanIoU(),
    ],
)
def test_other_mistakes_are_told_at_once(build):
    calls = []

    def counted():
        calls.append(1)
        return build()

    with pytest.raises((ValueError, TypeError)):
        compat.build_metrics(counted)
    assert calls == [1]


class SpeaksOld:
    def reset(self, metric):
        metric.reset_states()


class SpeaksNew:
    def reset(self, metric):
        metric.reset_state()


def test_metrics_get_their_old_names_only_for_those_who_use_them(monkeypatch):
    monkeypatch.setattr(compat, "_class_speaks_of", compat._class_speaks_of.__wrapped__)
    mean = keras.metrics.Mean()
    compat.with_old_names([mean], _alone(SpeaksNew))
    assert not hasattr(mean, "reset_states")
    mean.update_state(3.0)
    compat.with_old_names([mean], _alone(SpeaksNew), _alone(SpeaksOld))
    mean.reset_states()
    assert number(mean.result()) == 0.0


def _alone(cls):
    """An object of a class like this one, in a module of its own."""
    return type(cls.__name__, (), {**vars(cls), "__module__": "nowhere"})()


def test_speech_is_found_in_methods_properties_closures_and_strings():
    def wrapped(function):
        def call(self):
            return function(self)

        call.__wrapped__ = function
        return call

    class User:
        @property
        def one(self):
            return self.optimizer.first()

        @staticmethod
        def two(optimizer):
            return getattr(optimizer, "second")()  # noqa: B009

        @wrapped
        def three(self):
            return [lambda: self.third for _ in range(1)]

    user = _alone(User)
    for name in ("first", "second", "third"):
        assert compat.speaks_of(user, name)
    assert not compat.speaks_of(user, "fourth")
    assert not compat.speaks_of(TrainRunner(), "train_part")  # ours


# ---- learning rates ---------------------------------------------------------------------------


class AsksRate:
    def rate(self, optimizer):
        return optimizer.learning_rate(optimizer.iterations)


@pytest.mark.parametrize("wrap", [lambda x: x, keras.optimizers.LossScaleOptimizer])
def test_a_learning_rate_can_be_called_inside_and_is_a_value_outside(wrap):
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([10], [1.0, 0.5])
    optimizer = wrap(keras.optimizers.SGD(schedule))
    cls, user = type(optimizer), _alone(AsksRate)
    with compat.learning_rate_for(user, optimizer):
        assert isinstance(optimizer, cls)
        assert optimizer.learning_rate == 1.0 == optimizer.learning_rate.numpy()
        assert user.rate(optimizer) == 1.0
        assert optimizer.learning_rate(20) == 0.5
    assert type(optimizer) is cls and not callable(optimizer.learning_rate)


def test_the_optimizer_of_those_who_do_not_ask_is_left_alone():
    optimizer = keras.optimizers.SGD(0.25)
    with compat.learning_rate_for(_alone(SpeaksNew), optimizer):
        assert type(optimizer) is keras.optimizers.SGD
    with compat.learning_rate_for(_alone(AsksRate), None):
        pass


def test_a_constant_learning_rate_stays_what_it_is_at_any_step():
    optimizer = keras.optimizers.SGD(0.25)
    with compat.callable_learning_rate(optimizer):
        assert optimizer.learning_rate(7) == 0.25
        optimizer.learning_rate = 0.125
    assert number(optimizer.learning_rate) == 0.125
