import keras
import pytest

from hortus.core.checkpoints.layout import lay_out, module_items


class Stateful:
    def get_state(self):
        return {}

    def set_state(self, state):
        pass


class Filed:
    def save_files(self, folder):
        pass

    def load_files(self, folder):
        pass


class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.backbone = keras.layers.Dense(2)
        self.backbone.build((None, 3))
        self.head = keras.layers.Dense(1)
        self.head.build((None, 2))

    @property
    def checkpoint_items(self):
        return {"backbone": self.backbone, "decoder": None, "whole head": self.head}


def test_every_kind_of_item():
    layout = lay_out(
        {
            "model": Model(),
            "step": keras.Variable(1),
            "metrics": {"train": [keras.metrics.Mean("loss")]},
            "data": Filed(),
            "best": Stateful(),
            "evaluators": [Stateful(), Filed()],
            "seed": keras.random.SeedGenerator(1),
            "optimizer": keras.optimizers.SGD(0.1),
        }
    )
    assert layout.kinds == {
        "model": "layer",
        "step": "variable",
        "metrics": "group",
        "data": "files",
        "best": "state",
        "evaluators": "group",
        "seed": "seed",
        "optimizer": "optimizer",
    }
    assert set(layout.variables) == {
        "model/backbone/kernel",
        "model/backbone/bias",
        "model/head/kernel",
        "model/head/bias",
        "step",
        "metrics/train/loss/total",
        "metrics/train/loss/count",
        "seed/state",
        "optimizer/iterations",
    }
    assert set(layout.states) == {"best", "evaluators/0"}
    assert set(layout.files) == {"data", "evaluators/1"}


def test_what_items_share_is_held_once_and_known_under_all_names():
    model = Model()
    layout = lay_out({"backbone": model.backbone, "model": model})
    assert layout.aliases == {
        "model/backbone/kernel": "backbone/kernel",
        "model/backbone/bias": "backbone/bias",
    }
    assert layout.all_names()["backbone/bias"] == ["backbone/bias", "model/backbone/bias"]
    assert set(layout.variables) == {
        "backbone/kernel",
        "backbone/bias",
        "model/head/kernel",
        "model/head/bias",
    }


def test_modules_are_those_of_the_model():
    assert lay_out({"model": Model()}).modules == {
        "backbone": {"kernel": "model/backbone/kernel", "bias": "model/backbone/bias"},
        "whole head": {"kernel": "model/head/kernel", "bias": "model/head/bias"},
    }


def test_modules_may_be_a_method():
    class Other(Model):
        def checkpoint_items(self):
            return {"x": self.head}

    assert list(module_items(Other())) == ["x"]
    assert module_items(keras.layers.Dense(1)) == {}


@pytest.mark.parametrize("item", [3, "text", object(), [object()], {"a": None}])
def test_what_cannot_be_saved_is_named(item):
    with pytest.raises(TypeError, match=r"checkpoint item thing.* cannot be saved\. Expected"):
        lay_out({"thing": item})
