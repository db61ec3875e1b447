import keras
import pytest

from hortus.testing import backbones as testing
from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.modeling.backbones import revnet
from hortus.vision.modeling.layers.normalization.norm_act import NormAct


def test_contract(tmp_path):
    config = backbone_configs.Backbone({"type": "revnet", "revnet": {"model_id": 38}})
    testing.check(config, tmp_path)


def test_the_activation_is_used_throughout():
    with keras.StatelessScope(initialize_variables=False):
        model = revnet.RevNet(38, norm_act=NormAct(activation="swish"))
    used = {layer.norm_act.activation_name for layer in model.layers if hasattr(layer, "norm_act")}
    assert used == {"swish"}


def test_an_unknown_depth_is_refused():
    with pytest.raises(ValueError, match=r"one of \[38, 56, 104\], got 50"):
        revnet.RevNet(50)
