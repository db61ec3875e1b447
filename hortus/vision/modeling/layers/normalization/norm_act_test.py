import math

import keras
import numpy as np
import pytest

from hortus.vision.configs import common
from hortus.vision.modeling.layers import activations
from hortus.vision.modeling.layers.normalization.norm_act import BatchNormalization, NormAct

X = np.array([-4.0, -1.0, 0.0, 0.5, 2.0, 7.0], "float32")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("relu", [0, 0, 0, 0.5, 2, 7]),
        ("relu6", [0, 0, 0, 0.5, 2, 6]),
        ("swish", X / (1 + np.exp(-X))),
        ("simple_swish", X / (1 + np.exp(-X))),
        ("hard_swish", X * np.clip(X + 3, 0, 6) / 6),
        ("hard_sigmoid", np.clip(X + 3, 0, 6) * 0.16667),
        ("gelu", [x / 2 * (1 + math.erf(x / math.sqrt(2))) for x in X]),
        ("leaky_relu", np.where(X < 0, 0.2 * X, X)),
        ("mish", X * np.tanh(np.log1p(np.exp(X)))),
        ("identity", X),
        ("linear", X),
        ("squared_relu", np.maximum(X, 0) ** 2),
        ("tanh", np.tanh(X)),
    ],
)
def test_activations_by_name(name, expected):
    # float32 rounding of values up to 49.
    np.testing.assert_allclose(activations.get(name)(X), expected, rtol=1e-5, atol=1e-6)


def test_activations_know_near_names():
    with pytest.raises(KeyError, match="did you mean 'squared_relu'"):
        activations.get("squard_relu")
    assert activations.get(None) is keras.activations.linear
    assert activations.get(np.sin) is np.sin


def test_norm_act_follows_the_config():
    config = common.NormActivation(
        activation="swish", use_sync_bn=True, norm_momentum=0.9, norm_epsilon=1e-4
    )
    norm_act = NormAct.from_config(config, bn_trainable=False)
    norm = norm_act.norm(name="stem_norm")
    assert isinstance(norm, BatchNormalization) and norm.name == "stem_norm"
    assert (norm.momentum, norm.epsilon, norm.synchronized) == (0.9, 1e-4, True)
    assert not norm.trainable
    assert norm_act.activation(name="act").activation is activations.swish
    assert norm_act.activate is activations.swish


def test_norm_act_takes_every_field_of_the_config():
    fields = set(common.NormActivation().as_dict())
    assert set(NormAct().get_config()) - fields == {"bn_trainable"}


@pytest.mark.parametrize("activation", ["hard_swish", activations.squared_relu])
def test_norm_act_round_trip(activation):
    norm_act = NormAct(activation=activation, norm_momentum=0.5, bn_trainable=False)
    config = keras.saving.serialize_keras_object(norm_act)
    again = keras.saving.deserialize_keras_object(config)
    assert again.activate is norm_act.activate
    assert again.get_config() == norm_act.get_config()


def test_replace_changes_a_copy():
    norm_act = NormAct(norm_momentum=0.5)
    assert norm_act.replace(activation="relu6").activate is keras.activations.relu6
    assert norm_act.replace(activation="relu6").norm_momentum == 0.5
    assert norm_act.activate is keras.activations.relu
