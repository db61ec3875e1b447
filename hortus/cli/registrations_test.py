import sys

import pytest

from hortus.cli import registrations
from hortus.cli.errors import CommandError
from hortus.core import exp_factory

EXPERIMENT = """
from hortus.core import config_definitions, exp_factory

@exp_factory.register_config_factory({name!r})
def mine():
    return config_definitions.ExperimentConfig()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, for modules that no other test imports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("HORTUS_IMPORT", raising=False)
    return tmp_path


def test_modules_of_the_current_folder_are_found(folder, monkeypatch):
    for number in (1, 2):
        name = f"registrations_test_module_{number}"
        (folder / f"{name}.py").write_text(EXPERIMENT.format(name=f"registrations_test/{number}"))
    monkeypatch.setenv("HORTUS_IMPORT", "registrations_test_module_1, ")
    registrations.load(["registrations_test_module_2"])
    for number in (1, 2):
        exp_factory.get_exp_config(f"registrations_test/{number}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module_here", r"--import no_such_module_here: there is no such module in .*"),
        ("experiments/mine.py", r".*named without folder and ending: experiments\.mine"),
    ],
)
def test_a_module_that_is_not_there(folder, name, message):
    with pytest.raises(CommandError, match=message):
        registrations.load([name])


def test_a_fault_of_a_users_module_is_named_with_its_line(folder):
    (folder / "registrations_test_broken.py").write_text("a = 1\nb = a / 0\n")
    with pytest.raises(CommandError, match=r"ZeroDivisionError: .*registrations_test_broken.py:2"):
        registrations.load(["registrations_test_broken"])


def test_a_module_that_lacks_another_is_told_as_such(folder):
    (folder / "registrations_test_lacking.py").write_text("import no_such_module_here\n")
    with pytest.raises(CommandError, match="ModuleNotFoundError: No module named"):
        registrations.load(["registrations_test_lacking"])
