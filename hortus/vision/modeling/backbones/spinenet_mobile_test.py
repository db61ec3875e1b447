import keras
import pytest

from hortus.testing import backbones as testing
from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.modeling.backbones import spinenet_mobile

IMAGES = keras.layers.InputSpec(shape=(None, 128, 128, 3))


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="takes minutes to compile; its layers are tested there"
)
def test_contract(tmp_path):
    config = backbone_configs.Backbone(type="spinenet_mobile")
    # Without squeeze-excite: so slim, all of its units may be dead by chance, and get no gradient.
    config.spinenet_mobile.override(
        {"model_id": "49XS", "se_ratio": 0.0, "stochastic_depth_drop_rate": 0.2}
    )
    # The coarsest level needs 128 pixels.
    testing.check(config, tmp_path, sizes=(128, 256))


def test_squeeze_excitation_can_be_left_out():
    with keras.StatelessScope(initialize_variables=False):
        model = spinenet_mobile.SpineNetMobile("49XS", IMAGES, se_ratio=0.0)
    assert not [weight.path for weight in model.weights if "squeeze" in weight.path]


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"one of .*'49XS'.*got '96'"):
        spinenet_mobile.SpineNetMobile("96")
    with pytest.raises(ValueError, match=r"from 3 to 7.*min_level=2"):
        spinenet_mobile.SpineNetMobile("49XS", IMAGES, min_level=2)
