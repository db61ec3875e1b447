"""All backbones through the contract of `hortus.testing.backbones`, by their smallest models."""

import pytest

from hortus.testing import backbones as testing
from hortus.vision.configs import backbones as backbone_configs


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("resnet", {"model_id": 10, "se_ratio": 0.25, "stochastic_depth_drop_rate": 0.2}),
        ("dilated_resnet", {"model_id": 50, "output_stride": 8}),
        (
            "efficientnet",
            {"model_id": "b0", "se_ratio": 0.25, "stochastic_depth_drop_rate": 0.2},
        ),
        (
            "mobilenet",
            {
                "model_id": "MobileNetV2",
                "filter_size_scale": 0.35,
                "output_stride": 16,
                "output_intermediate_endpoints": True,
                "stochastic_depth_drop_rate": 0.1,
            },
        ),
        ("mobiledet", {"model_id": "MobileDetCPU", "filter_size_scale": 0.35}),
        ("mobiledet", {"model_id": "MobileDetDSP", "filter_size_scale": 0.35}),
        ("mobilenet", {"model_id": "MobileNetV1", "filter_size_scale": 0.35}),
        ("mobilenet", {"model_id": "MobileNetV3Small", "filter_size_scale": 0.35}),
        ("mobilenet", {"model_id": "MobileNetV4HybridMedium", "filter_size_scale": 0.35}),
        (
            "vit",
            {
                "model_name": "",
                "hidden_size": 48,
                "representation_size": 24,
                "layer_scale_init_value": 0.1,
                "init_stochastic_depth_rate": 0.1,
                "output_2d_feature_maps": True,
                "pos_embed_shape": [3, 3],
                "transformer": {
                    "mlp_dim": 96,
                    "num_heads": 3,
                    "num_layers": 2,
                    "dropout_rate": 0.1,
                    "attention_dropout_rate": 0.1,
                },
            },
        ),
        (
            "vit",
            {
                "model_name": "",
                "hidden_size": 48,
                "pooler": "none",
                "original_init": False,
                "output_attention_scores": True,
                "init_stochastic_depth_rate": 0.5,
                "transformer": {"mlp_dim": 96, "num_heads": 3, "num_layers": 2},
            },
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_contract(kind, settings, tmp_path):
    config = backbone_configs.Backbone({"type": kind, kind: settings})
    testing.check(config, tmp_path)
