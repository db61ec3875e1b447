"""All decoders through the contract of `hortus.testing.decoders`, at a small size."""

import pytest

from hortus.testing import decoders as testing
from hortus.vision.configs import retinanet

DEPTHWISE_ASPP = {
    "dilation_rates": [2],
    "pool_kernel_size": [64, 112],
    "use_depthwise_convolution": True,
    "spp_layer_version": "v2",
}


def check(kind, settings, folder):
    config = retinanet.RetinaNet({"decoder": {"type": kind, kind: {"num_filters": 8, **settings}}})
    testing.check(config, folder)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("fpn", {}),
        ("aspp", {"dilation_rates": [2, 3], "dropout_rate": 0.2}),
    ],
    ids=["fpn", "aspp"],
)
def test_contract(kind, settings, tmp_path):
    check(kind, settings, tmp_path)


# On JAX, where each operation is compiled for each shape, these would take minutes.
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("fpn", {"fusion_type": "concat", "use_separable_conv": True}),
        ("nasfpn", {"num_repeats": 1}),
        ("aspp", DEPTHWISE_ASPP),
    ],
    ids=["fpn", "nasfpn", "aspp"],
)
def test_contract_on_tensorflow(kind, settings, tmp_path):
    check(kind, settings, tmp_path)
