import keras
import numpy as np
import pytest

from hortus.testing import backbones as testing
from hortus.testing import reference_dir
from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.configs import common
from hortus.vision.modeling.backbones import factory, revnet
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


def test_blocks_have_the_epsilon_that_revnets_were_trained_with():
    """Outputs for known weights do not depend on the epsilon that a recipe gives.

    Those of the reference were made with 1e-3 throughout. Here the stem has 1e-5, so that its
    variances are raised by the difference; blocks have 1e-3 all the same.
    """
    golden = np.load(reference_dir() / "golden" / "forward_backbones.npz")
    config = backbone_configs.Backbone({"type": "revnet", "revnet": {"model_id": 38}})
    model = factory.build_backbone(
        keras.layers.InputSpec(shape=(None, 64, 64, 3)),
        config,
        common.NormActivation(norm_epsilon=1e-5),
    )
    testing.set_known_weights(model)
    variance = model.get_layer("stem").norm.moving_variance
    variance.assign(variance + (1e-3 - 1e-5))
    outputs = model.predict(golden["input_64"], verbose=0)
    for level, output in outputs.items():
        prefix = f"revnet/38/eval/{level}"
        picked = output.ravel()[golden[f"{prefix}/sample_idx"]]
        largest = golden[f"{prefix}/mean_std_absmax"][2]
        # float32 through forty layers; with 1e-5 in the blocks they are off by 1e-3 to 3e-3.
        np.testing.assert_allclose(picked, golden[f"{prefix}/sample"], atol=1e-4 * largest)
