"""The benchmark of convolutions finds the figures that the cost model works with."""

import importlib.util
import pathlib
import sys

import keras
import pytest

from hortus.engine.tensorflow import cost_model, winograd

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of the TensorFlow engine"
)


@pytest.fixture(scope="module")
def benchmark():
    path = pathlib.Path(__file__).parents[1] / "benchmarks" / "convolution.py"
    spec = importlib.util.spec_from_file_location("convolution_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures_of_winograd_are_found_in_spite_of_a_wrong_time(benchmark):
    rows = []
    for size in benchmark._SIZES_3X3:
        batch, side, channels, filters = size
        tiles = winograd.count_tiles([(batch, side, side)])
        gain = cost_model.winograd_speed_up(batch * side**2, tiles, channels, filters)
        rows.append((size, {"TensorFlow": 8.0 * gain, "Winograd": 8.0}, "", {}))
    rows[3][1]["Winograd"] *= 3  # something else ran meanwhile
    figures = cost_model.figures()
    expected = figures.winograd_tile, figures.winograd_kernel
    # All other rows agree exactly; the iteration stops a little before.
    assert benchmark.fit_winograd(rows) == pytest.approx(expected, rel=1e-3)


def test_figures_of_the_fused_normalisation_are_found(benchmark):
    rows = []
    for size in benchmark._SIZES_1X1:
        batch, side, channels, filters = size
        count = batch * side**2
        products = cost_model.normalized_products(count, channels, filters)
        plain = 1e-6 * count * (filters + channels)
        gain = 2e-6 * (count * filters - products / 50 - 30_000)
        rows.append((size, {"products": plain + 1.0, "in one": plain + 1.0 - gain}, "", {}))
    assert benchmark.fit_normalization(rows) == pytest.approx((50, 30_000), rel=1e-3)


def test_a_fit_writes_what_the_cost_model_reads(benchmark, monkeypatch, tmp_path, capsys):
    for name in ("_SIZES_3X3", "_SIZES_1X1", "_SIZES_PADDED", "_SIZES_FEW_CHANNELS"):
        monkeypatch.setattr(benchmark, name, [(1, 4, 4, 4), (1, 8, 4, 8), (2, 8, 8, 8)])
    monkeypatch.setattr(benchmark, "_SIZES_NARROW", [(1, 4, 1024, 4)])
    path = tmp_path / "figures.json"
    monkeypatch.setattr(
        sys, "argv", ["convolution", "--turns=1", "--fit", "--busy", f"--figures={path}"]
    )
    before = cost_model.PATH.read_text()
    benchmark.main()
    found = cost_model.read(path)
    assert found.winograd_least_gain == cost_model.figures().winograd_least_gain  # chosen
    assert found.least_channels in (4, 8, 16) and found.most_narrow in (0, 4)
    assert f"written to {path}" in capsys.readouterr().out
    assert cost_model.PATH.read_text() == before
