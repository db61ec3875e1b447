"""What the documents show is true: code blocks run, commands exist, links lead somewhere."""

import pathlib
import re

import pytest

from hortus.cli.main import main

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("**/*.md")),
]


def _name(path):
    return str(path.relative_to(ROOT))


def code_blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_python_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    for block in code_blocks(path.read_text("utf-8"), "python"):
        exec(compile(block, str(path), "exec"), names)


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text("utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{_name(path)} links to {target}"


def test_the_mistake_in_the_readme_is_what_one_sees(capsys):
    text = (ROOT / "README.md").read_text("utf-8")
    command, answer = re.search(
        r"^    \$ hortus (.*)\n    (error: .*)$", text, re.MULTILINE
    ).groups()
    assert main(command.split()) == 2
    assert capsys.readouterr().err == answer + "\n"


def test_make_targets_in_the_documents_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for path in DOCUMENTS:
        named = re.findall(r"(?:^    |`)make ([a-z]+)", path.read_text("utf-8"), re.MULTILINE)
        assert set(named) <= targets, _name(path)
