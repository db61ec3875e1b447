import dataclasses
import json

import pytest

from hortus.engine.tensorflow import cost_model


@pytest.fixture(autouse=True)
def _figures(monkeypatch):
    """Those that the comments below were measured with, whatever was fitted since."""
    found = cost_model.Figures(
        winograd_tile=87.0,
        winograd_kernel=30.0,
        winograd_least_gain=1.05,
        least_channels=16,
        most_window_bytes=64_000_000,
        normalization_products=80.0,
        normalization_outputs=75_000.0,
        unlucky_width=1024,
        most_narrow=320,
        padding=16,
    )
    monkeypatch.setattr(cost_model, "figures", lambda: found)


def test_the_package_brings_figures():
    found = cost_model.read(cost_model.PATH)
    assert all(value > 0 for value in dataclasses.asdict(found).values())
    assert found.winograd_least_gain >= 1.0


def test_figures_are_written_and_read(tmp_path):
    path = tmp_path / "figures.json"
    cost_model.write(path, cost_model.figures())
    assert cost_model.read(path) == cost_model.figures()


def test_a_file_that_lacks_a_figure_says_how_to_write_it(tmp_path):
    path = tmp_path / "figures.json"
    path.write_text(json.dumps({"padding": 16}))
    with pytest.raises(ValueError, match=r"must hold .*but has \['padding'\].*--fit"):
        cost_model.read(path)


def winograd(batch, side, channels, filters):
    tiles = batch * (-(-side // 4)) ** 2
    return cost_model.winograd_speed_up(batch * side**2, tiles, channels, filters)


def test_winograd_gains_with_many_channels():
    assert winograd(4, 32, 256, 256) > 1.5
    assert winograd(4, 64, 64, 64) > 1.05  # measured: 1.05 to 1.2
    assert winograd(4, 32, 32, 32) < 1.05  # measured: 0.7
    assert winograd(1, 4, 256, 256) < 1.0  # all the work would be that of mapping the kernel
    assert cost_model.is_winograd_faster(4096, 256, 256, 256)
    assert not cost_model.is_winograd_faster(4096, 256, 32, 32)


def test_other_figures_can_be_tried():
    dear = dataclasses.replace(cost_model.figures(), winograd_tile=870.0)
    assert cost_model.winograd_speed_up(4096, 256, 256, 256, by=dear) < 1.0


def test_products_need_channels_and_memory():
    assert cost_model.is_3x3_product_faster(1024, 16, 16, 4)
    assert not cost_model.is_3x3_product_faster(1024, 3, 32, 4)
    assert not cost_model.is_3x3_product_faster(1024, 32, 8, 4)
    assert not cost_model.is_3x3_product_faster(1_000_000, 16, 16, 4)


def test_a_fused_normalisation_needs_many_outputs():
    assert cost_model.is_normalized_faster(16 * 64 * 64, 16, 96)  # measured: 1.6 times as fast
    assert not cost_model.is_normalized_faster(16 * 4 * 4, 512, 2048)  # half as fast
    assert not cost_model.is_normalized_faster(16, 16, 64)


def test_unlucky_rows_are_padded_where_the_other_factor_is_narrow():
    assert cost_model.padding((4096, 1024), 256) == 16
    assert cost_model.padding((4096, 2048), 320) == 16
    assert cost_model.padding((4096, 1024), 512) == 0
    assert cost_model.padding((4096, 1000), 256) == 0
