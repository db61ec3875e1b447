import importlib
import sys

import pytest


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A lazy package `pond` of two modules; the second one cannot be imported."""
    folder = tmp_path / "pond"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "import typing\n"
        "from hortus import lazy\n"
        "if typing.TYPE_CHECKING:\n"
        "    from pond import frogs as frogs\n"
        "    from pond.fish import Carp as Carp, Pike as Hunter\n"
        "    from pond.frogs import Toad as Toad\n"
        "calls = []\n"
        "__getattr__, __dir__, __all__ = lazy.attach(__name__, lambda: calls.append(1))\n"
    )
    (folder / "fish.py").write_text("class Carp: ...\nclass Pike: ...\n")
    (folder / "frogs.py").write_text("class Toad: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("pond")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pond"]:
        del sys.modules[name]


def test_a_module_is_imported_with_its_first_name(package):
    assert not {"pond.fish", "pond.frogs"} & set(sys.modules)
    assert package.Carp.__name__ == "Carp" and package.Hunter.__name__ == "Pike"
    assert "pond.frogs" not in sys.modules
    assert package.frogs is sys.modules["pond.frogs"]
    assert package.calls == [1, 1, 1], "what has to be done before was done"


def test_all_names_are_listed(package):
    assert package.__all__ == ["Carp", "Hunter", "Toad", "frogs"]
    assert {"Carp", "Toad", "calls"} <= set(dir(package))
    names: dict = {}
    exec("from pond import *", names)
    assert {"Carp", "Hunter", "Toad"} <= set(names)


def test_a_name_that_is_not_there(package):
    with pytest.raises(AttributeError, match="module 'pond' has no attribute 'Newt'"):
        _ = package.Newt


@pytest.mark.parametrize(
    "name",
    [
        "hortus.optimization",
        "hortus.core.checkpoints",
        "hortus.vision.modeling.layers",
        "hortus.vision.serving",
    ],
)
def test_lazy_packages_of_ours_have_all_that_they_list(name):
    package = importlib.import_module(name)
    assert package.__all__
    for each in package.__all__:
        assert getattr(package, each) is not None
