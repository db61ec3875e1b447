import fractions
import sys
import warnings

import pytest

from hortus import hyperparams
from hortus.cli import errors
from hortus.core import actions


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (hyperparams.ConfigError("a.b: wrong"), "error: a.b: wrong\n"),
        (errors.CommandError("not like this"), "error: not like this\n"),
        (FileNotFoundError(2, "No such file", "x.yaml"), "error: x.yaml: No such file\n"),
        (OSError("disk on fire"), "error: disk on fire\n"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_two(capsys, error, message):
    with errors.reported() as outcome:
        raise error
    assert outcome.code == 2
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize(("module", "name"), errors._MISTAKES)
def test_the_mistakes_of_other_modules_are_known(capsys, module, name):
    mistake = getattr(pytest.importorskip(module), name)
    error = mistake.__new__(mistake)
    error.args = ("a finished sentence",)
    with errors.reported() as outcome:
        raise error
    assert outcome.code == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("error", [KeyError("x"), UnicodeError("x"), RuntimeError("x")])
def test_a_fault_of_the_program_stays_a_fault(error):
    with pytest.raises(type(error)), errors.reported():
        raise error


def test_a_value_error_that_was_written_for_the_user_is_a_mistake(capsys):
    with errors.reported() as outcome:
        actions.EarlyStopping("accuracy", patience=0)
    assert outcome.code == 2
    assert capsys.readouterr() == ("", "error: patience is 0, expected 1 or more\n")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda: int("x"), id="of Python"),
        pytest.param(lambda: fractions.Fraction("x"), id="of a library"),
        pytest.param(lambda: next(iter([]), None).__format__("d"), id="of another kind"),
    ],
)
def test_a_value_error_that_just_happened_is_a_fault(fault):
    with pytest.raises((ValueError, TypeError)), errors.reported():
        fault()


@pytest.mark.parametrize(("code", "expected"), [(None, 0), (0, 0), (3, 3), ("text", 1)])
def test_the_exit_code_of_the_command_is_kept(code, expected):
    with errors.reported() as outcome:
        sys.exit(code)
    assert outcome.code == expected


def test_a_config_warning_is_one_line_and_comes_once(capsys):
    with errors.reported() as outcome:
        for _ in range(3):
            warnings.warn("no effect", hyperparams.ConfigWarning, stacklevel=1)
    assert outcome.code == 0
    assert capsys.readouterr() == ("", "warning: no effect\n")


def test_warnings_are_as_usual_afterwards():
    before = warnings.showwarning
    with errors.reported():
        assert warnings.showwarning is not before
    assert warnings.showwarning is before
