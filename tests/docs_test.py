"""What the documents show is true: code blocks run, commands exist, links lead somewhere.

The fenced blocks of a document are run from top to bottom, in a folder of their own:

- a block of any language whose first line is a comment with a file name (`# flowers.py`) is saved
  under this name;
- `python` blocks are executed in one namespace, as when pasted into an interpreter;
- `sh` blocks are run by a shell, and have to succeed;
- other languages are to be read.

A document with the line `<!-- runs in a process of its own -->` gets one, as it settles what can be
settled once: devices, flags.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
]
ALONE = "<!-- runs in a process of its own -->"
FILE = re.compile(r"# ([\w./-]+\.(?:py|yaml|json|txt))\n")


def _name(path):
    return str(path.relative_to(ROOT))


def blocks(text):
    """(language, content) of the fenced blocks, in their order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_document(path):
    """Runs the blocks of a document in the current folder."""
    names = {"__name__": "guide"}
    for language, content in blocks(path.read_text("utf-8")):
        file = FILE.match(content)
        if file:
            target = pathlib.Path(file[1])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
        elif language == "python":
            exec(compile(content, str(path), "exec"), names)
        elif language == "sh":
            run_shell(content)


def run_shell(content):
    binaries = os.path.dirname(sys.executable)
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "PYTHONUNBUFFERED": "1"}
    environment["PATH"] = os.pathsep.join([binaries, environment["PATH"]])
    done = subprocess.run(
        ["bash", "-euc", content], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{content}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if ALONE not in path.read_text("utf-8"):
        monkeypatch.syspath_prepend(tmp_path)
        run_document(path)
        return
    command = [sys.executable, __file__, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text("utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{_name(path)} links to {target}"


def shell_lines(text):
    """The commands `hortus ...` of a document as lists of words, fenced or indented by four."""
    code = [content for language, content in blocks(text) if language == "sh"]
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    code += re.findall(r"^    (.*(?:\\\n.*)*)$", plain, re.MULTILINE)
    for line in "\n".join(code).replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line.removeprefix("$ "), comments=True)
        except ValueError:  # no command, but output or a picture
            continue
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words = words[1:]  # variables of the environment
        if len(words) > 1 and words[0] == "hortus" and re.fullmatch(r"-.*|[a-z-]+", words[1]):
            yield words


def problems_of(words, command):
    """Which parts of `hortus ...` do not exist."""
    words = list(words[1:])
    while words:
        word = words.pop(0)
        options = {name: p for p in command.params for name in (*p.opts, *p.secondary_opts)}
        if word == "--import":  # can stand anywhere
            words = words[1:]
        elif word.startswith("-") and word not in ("--help", "--debug"):
            option = options.get(word.split("=")[0])
            if option is None:
                yield f"{word} of {command.name}"
            elif "=" not in word and not getattr(option, "is_flag", False):
                words = words[1:]
        elif hasattr(command, "commands") and not word.startswith("-"):
            if word not in command.commands:
                yield word
                return
            command = command.commands[word]


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_commands_and_their_options_exist(path):
    import typer

    from hortus.cli.main import app

    whole = typer.main.get_command(app)
    for words in shell_lines(path.read_text("utf-8")):
        assert not list(problems_of(words, whole)), shlex.join(words)


def test_a_wrong_command_is_found():
    import typer

    from hortus.cli.main import app

    whole = typer.main.get_command(app)
    text = "Look:\n\n    hortus train -e x \\\n        --modle_dir y a=1\n\n    hortus dscribe\n"
    found = [list(problems_of(words, whole)) for words in shell_lines(text)]
    assert found == [["--modle_dir of train"], ["dscribe"]]


def test_the_mistake_in_the_readme_is_what_one_sees(capsys):
    from hortus.cli.main import main

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


def test_the_reference_has_what_users_write_down(tmp_path):
    command = [sys.executable, str(ROOT / "docs" / "build_reference.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.stem: path.read_text("utf-8") for path in tmp_path.glob("*.md")}
    for page, title, text in (
        ("hortus.hyperparams", "#### Config.override", "override("),
        ("hortus.core", "#### Task.train_step", "- `optimizer`: "),
        (
            "hortus.core",
            "### TrainerConfig",
            "- `train_steps: NonNegativeInt = 0`: Steps to train",
        ),
        ("hortus.vision.modeling", "### register_backbone_builder", "**The builder receives**"),
        ("hortus.vision.dataloaders", "### InputReader", "- `decoder_fn`: a record"),
    ):
        section = pages[page].split(f"\n{title}\n")[1].split("\n### ")[0]
        assert text in section, f"{title} in {page}"
    for name, text in pages.items():
        titles = {"#" + title.replace(".", "") for title in re.findall(r"^## (.*)$", text, re.M)}
        links = re.findall(r"^- \[[\w.]+\]\((\S+)\)", text, re.M)
        wrong = [x for x in links if x not in titles and not (tmp_path / x).is_file()]
        assert links and not wrong, f"{name}: {wrong}"
        public = re.findall(r"^##+ (?:[\w.]+\.)?(_\w+)$", text, re.M)
        assert not public, f"{name} shows {public}"


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    run_document(pathlib.Path(sys.argv[1]))
