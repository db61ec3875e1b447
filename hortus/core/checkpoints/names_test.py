import keras
import pytest

from hortus import testing
from hortus.core.checkpoints import names
from hortus.core.checkpoints.names import named_variables


def test_on_jax():
    testing.run_under_engine(
        "jax", __file__, select="subclassed_layer or functional or sequential or compiling"
    )


def kinds(item):
    return {name: named.kind for name, named in named_variables(item).items()}


class Block(keras.layers.Layer):
    """A subclassed layer with every kind of thing that holds variables."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._conv = keras.layers.Conv2D(2, 1)
        self.norms = [keras.layers.BatchNormalization(), keras.layers.BatchNormalization()]
        self.heads = {"b/c": keras.layers.Dense(1), "a": keras.layers.Dense(1)}
        self.drop = keras.layers.Dropout(0.5, seed=1)
        self.seen = keras.metrics.Mean(name="examples")
        self.random = keras.random.SeedGenerator(1)

    def build(self, shape):
        self.scale = self.add_weight(shape=(2,))
        self._offsets = [self.add_weight(shape=(1,), trainable=False) for _ in range(2)]
        self._conv.build(shape)
        for norm in self.norms:
            norm.build((None, 2))
        for head in self.heads.values():
            head.build((None, 2))

    def call(self, x):
        return self._conv(x)


BLOCK = {
    "scale": "weight",
    "offsets/0": "weight",
    "offsets/1": "weight",
    "conv/kernel": "weight",
    "conv/bias": "weight",
    "heads/a/kernel": "weight",
    "heads/a/bias": "weight",
    "heads/b.c/kernel": "weight",
    "heads/b.c/bias": "weight",
    "drop/seed_generator/state": "seed",
    "random/state": "seed",
    "seen/total": "metric",
    "seen/count": "metric",
} | {
    f"norms/{i}/{part}": "weight"
    for i in range(2)
    for part in ("beta", "gamma", "moving_mean", "moving_variance")
}


def functional():
    inputs = keras.Input((4, 4, 3))
    x = keras.layers.Conv2D(2, 1)(inputs)
    x = keras.layers.Conv2D(2, 1, name="stem")(x)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.Conv2D(2, 1)(x)
    return keras.Model(inputs, x)


FUNCTIONAL = {
    f"layers/{layer}/{part}"
    for layer, parts in {
        "conv2d-0": ("kernel", "bias"),
        "conv2d-1": ("kernel", "bias"),
        "stem": ("kernel", "bias"),
        "batch_normalization-0": ("beta", "gamma", "moving_mean", "moving_variance"),
    }.items()
    for part in parts
}


class Detector(keras.Model):
    """A Functional model that also holds its parts as attributes."""

    def __init__(self, **kwargs):
        backbone, head = functional(), keras.layers.Conv2D(5, 1)
        inputs = keras.Input((4, 4, 3))
        features = backbone(inputs)
        super().__init__(inputs, keras.layers.Conv2D(3, 1)(head(features)), **kwargs)
        self._backbone = backbone
        self.head = head
        self.also_head = head


def test_a_subclassed_layer():
    block = Block()
    block.build((None, 4, 4, 3))
    assert kinds(block) == BLOCK


def test_a_functional_model():
    assert set(kinds(functional())) == FUNCTIONAL


def test_a_sequential_model():
    model = keras.Sequential([keras.layers.Dense(2), keras.layers.ReLU(), keras.layers.Dense(3)])
    model.build((None, 4))
    parts = ("kernel", "bias")
    assert set(kinds(model)) == {f"layers/dense-{i}/{part}" for i in range(2) for part in parts}


def test_attributes_name_the_parts_of_a_functional_model_and_shared_layers_are_named_once():
    expected = {f"backbone/{name}" for name in FUNCTIONAL}
    expected |= {"also_head/kernel", "also_head/bias"}  # the first in the alphabet
    expected |= {"layers/conv2d-1/kernel", "layers/conv2d-1/bias"}
    assert set(kinds(Detector())) == expected


@pytest.mark.parametrize("build", [functional, Detector, lambda: keras.Sequential([Block()])])
def test_two_builds_in_one_process_have_the_same_names(build):
    first, second = build(), build()
    for model in (first, second):
        model.build((None, 4, 4, 3))
    assert [v.path for v in first.variables] != [v.path for v in second.variables]
    assert list(kinds(first)) == list(kinds(second))


def test_all_variables_are_named_and_nothing_else():
    model = Detector()
    named = {id(n.variable) for n in named_variables(model).values()}
    assert named == {id(v) for v in model.variables}
    weights = {id(n.variable) for n in named_variables(model).values() if n.kind == "weight"}
    assert weights == {id(v) for v in model.weights}


def test_naming_does_not_count_up_the_names_of_keras():
    def counters():
        made = [keras.layers.Layer(), keras.layers.Identity(), keras.Sequential(), functional()]
        names_made = [item.name for item in [*made, keras.metrics.Metric()]]
        return [int("0" + "".join(filter(str.isdigit, name))) for name in names_made]

    model = functional()
    before = counters()
    names._attributes_of_base.cache_clear()
    named_variables(model)
    named_variables(keras.layers.Layer(name="x"))
    named_variables(keras.metrics.Mean(name="x"))
    assert [a - b for a, b in zip(counters(), before, strict=True)] == [1, 1, 1, 1, 1]


def test_compiling_changes_nothing():
    model = functional()
    before = kinds(model)
    model.compile("adam", "mse", metrics=["mae"])
    assert kinds(model) == before


def test_the_shortest_way_names_what_is_shared():
    class Outer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            shared = keras.layers.Dense(1)
            shared.build((None, 1))
            self.a = keras.Sequential([shared])
            self.z = shared

    assert set(kinds(Outer())) == {"z/kernel", "z/bias"}


def test_a_public_and_a_private_attribute_of_one_name_are_told_apart():
    class Layer(keras.layers.Layer):
        def build(self, _):
            self.x = self.add_weight(shape=())
            self._x = self.add_weight(shape=())

    layer = Layer()
    layer.build(None)
    assert set(kinds(layer)) == {"x", "_x"}


def test_what_keras_does_not_track_is_not_state():
    class Student(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            teacher = keras.layers.Dense(1)
            teacher.build((None, 1))
            # Past Keras' tracking, as distillation hides a teacher.
            vars(self)["teacher"] = teacher

        def build(self, _):
            self.w = self.add_weight(shape=())

    student = Student()
    student.build(None)
    assert set(kinds(student)) == {"w"}


def test_state_that_no_attribute_leads_to_is_named_all_the_same():
    class Hidden(keras.layers.Layer):
        def build(self, _):
            self.add_weight(shape=(1,), name="forgotten")

    layer = Hidden()
    layer.build(None)
    assert kinds(layer) == {"other/0": "weight"}


def test_metrics_in_a_list_have_the_names_of_their_author():
    metrics = [keras.metrics.Mean("loss"), keras.metrics.Mean()]
    assert set(kinds(metrics)) == {"loss/total", "loss/count", "1/total", "1/count"}


def test_metrics_of_one_name_are_counted():
    metrics = [keras.metrics.Mean("loss"), keras.metrics.Mean("loss")]
    assert set(kinds(metrics)) == {"0/total", "0/count", "1/total", "1/count"}


def test_lone_things():
    assert kinds(keras.Variable(1.0)) == {"": "variable"}
    assert kinds(keras.random.SeedGenerator(1)) == {"state": "seed"}
    assert kinds({"a": keras.Variable(1.0), "b": [keras.Variable(2.0)]}) == {
        "a": "variable",
        "b/0": "variable",
    }
    assert kinds([]) == {}


def test_an_object_with_variables():
    class Holder:
        def __init__(self):
            self.count = keras.Variable(1.0)
            self._not_state = keras.Variable(1.0)
            self.variables = [self.count]

    assert kinds(Holder()) == {"count": "variable"}


def test_auto_names_of_all_layers_are_recognised():
    made = 0
    for name in dir(keras.layers):
        cls = getattr(keras.layers, name)
        if isinstance(cls, type) and issubclass(cls, keras.layers.Layer):
            try:
                layer = cls()
            except (TypeError, ValueError, ImportError):
                continue  # needs arguments
            made += 1
            assert names.has_auto_name(layer), (name, layer.name)
    assert made > 50
    assert not names.has_auto_name(keras.layers.Dense(1, name="logits"))
    assert not names.has_auto_name(keras.layers.Dense(1, name="block_3"))
