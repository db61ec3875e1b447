"""What the library says to those who call it from Python."""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent / "hortus"
OPTION = re.compile(r"(?<![\w-])--[a-z]\w*")
# A command that is named whole may have its options.
COMMAND = re.compile(r"(hortus --import|python \S+ --)\s?\S+")


def options_in_errors(source: str) -> list[str]:
    """Options of the command line in texts of exceptions that are raised."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    found += OPTION.findall(COMMAND.sub("", part.value))
    return found


def test_messages_to_python_callers_name_arguments_and_no_options():
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        inside = path.relative_to(ROOT)
        if inside.parts[0] != "cli" and not path.name.endswith("_test.py"):
            options = options_in_errors(path.read_text("utf-8"))
            if options:
                found[str(inside)] = options
    assert found == {}


def test_an_option_in_a_message_is_found():
    assert options_in_errors('raise E(f"{x}: use --force, or hortus --import m")') == ["--force"]
    assert options_in_errors('raise E("a -- b")') == []
