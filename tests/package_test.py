"""What is in the wheel, and what installing it brings along."""

import email
import pathlib
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    build = pytest.importorskip("hatchling.build", reason="comes with hortus[dev]")
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = build.build_wheel(str(folder))
    with zipfile.ZipFile(folder / name) as archive:
        yield archive


@pytest.fixture(scope="module")
def metadata(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


def test_all_modules_are_in_and_no_tests(wheel):
    names = set(wheel.namelist())
    modules = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "hortus").rglob("*.py")
        if not path.name.endswith("_test.py") and path.name != "conftest.py"
    }
    assert modules <= names
    assert not [name for name in names if name.endswith(("_test.py", "conftest.py"))]
    assert not [name for name in names if not name.startswith(("hortus/", "hortus-"))]


def test_yaml_files_and_the_types_marker_are_in(wheel):
    names = set(wheel.namelist())
    assert "hortus/py.typed" in names
    recipes = {path.relative_to(ROOT).as_posix() for path in (ROOT / "hortus").rglob("*.yaml")}
    assert recipes <= names


def test_the_command_and_the_licence_are_in(wheel):
    (entry,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "hortus = hortus.cli.main:main" in wheel.read(entry).decode()
    assert [name for name in wheel.namelist() if name.endswith("licenses/LICENSE")]


def test_the_core_needs_no_numerical_framework(metadata):
    required = {
        requirement.split(">")[0].lower()
        for requirement in metadata.get_all("Requires-Dist")
        if "extra ==" not in requirement
    }
    assert required == {"absl-py", "pydantic", "pyyaml", "rich", "typer"}


def test_the_extras_are_those_of_the_documents(metadata):
    extras = set(metadata.get_all("Provides-Extra"))
    assert {"tensorflow", "cpu", "jax", "export", "tfds", "dev"} <= extras
