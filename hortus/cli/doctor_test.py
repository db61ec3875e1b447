import importlib.metadata
import re

import pytest

from hortus.cli import doctor


def test_the_extras_are_those_of_the_package():
    """What doctor tells to install must bring the package that is missing."""
    requirements = importlib.metadata.requires("hortus") or []
    for extra, packages in doctor.EXTRAS.items():
        own = [line for line in requirements if re.search(rf"extra == ['\"]{extra}['\"]", line)]
        named = {re.split(r"[^\w.-]", line)[0].removesuffix("-cpu") for line in own}
        assert {package for package, _ in packages} <= named, extra


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"missing": True}, "pip install 'hortus[jax]'"),
        ({"error": "no libcuda"}, "does not load: no libcuda"),
        ({"devices": ["CPU: 0"], "onednn": False}, "CPU: 0; oneDNN off"),
        ({"devices": ["CPU: 0"], "onednn": True}, "oneDNN on"),
    ],
)
def test_what_is_said_of_an_engine(found, text):
    assert text in doctor._engine_text("jax", found)


def test_the_report_ends_with_1_if_no_engine_works(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "_probe", lambda engine: {"missing": True})
    assert doctor.run() == 1
    assert "No engine works" in capsys.readouterr().out


def test_an_engine_that_fails_tells_its_last_line(monkeypatch):
    monkeypatch.setitem(doctor._PROBES, "jax", "raise ImportError('no such file')")
    assert doctor._probe("jax") == {"error": "ImportError: no such file"}
