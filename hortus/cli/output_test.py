import pytest

from hortus.cli import output

ROWS = [("oak", "Grows old."), ("hornbeam", "Makes hedges.")]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_a_table_in_a_pipe_has_aligned_columns(capsys):
    output.table(ROWS)
    assert capsys.readouterr().out == "oak       Grows old.\nhornbeam  Makes hedges.\n"


def test_a_table_at_a_terminal_has_colours(capsys, terminal):
    output.table(ROWS)
    out = capsys.readouterr().out
    assert "\x1b[" in out
    assert "oak" in out and "Makes hedges." in out


def test_yaml_in_a_pipe_is_the_text_itself(capsys):
    output.yaml("a: 1  # x\nb:\n- c: 2\n")
    assert capsys.readouterr().out == "a: 1  # x\nb:\n- c: 2\n"


def test_yaml_at_a_terminal_keeps_every_character(capsys, terminal):
    text = "# head\nab: '[bold]x[/bold]'  # y\nlong: " + "z" * 50 + "\n- c: 2\n"
    output.yaml(text)
    out = capsys.readouterr().out
    assert "\x1b[" in out
    assert _plain(out) == text


def test_json_at_a_terminal_keeps_every_character(capsys, terminal):
    text = '{\n  "a": "[bold]",\n  "b": ' + "1" * 50 + "\n}"
    output.json(text)
    out = capsys.readouterr().out
    assert "\x1b[" in out
    assert _plain(out) == text + "\n"


def test_a_tree_in_a_pipe_is_not_cut(capsys):
    output.tree([("", "root", "", ""), ("└─ ", "leaf", "1", "x" * 200)])
    assert capsys.readouterr().out == "root\n└─ leaf: 1  " + "x" * 200 + "\n"


def test_a_tree_at_a_terminal_is_cut_at_its_edge(capsys, terminal):
    output.tree([("", "root", "", ""), ("└─ ", "leaf", "1", "x" * 200)])
    lines = _plain(capsys.readouterr().out).splitlines()
    assert [len(line.rstrip()) for line in lines] == [4, 30]
    assert lines[1].startswith("└─ leaf: 1  xxx")


def _plain(text):
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)
