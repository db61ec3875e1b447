"""Odd surroundings: closed streams, locales without UTF-8, file names that are no UTF-8."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from hortus.cli import errors
from hortus.cli.main import main

EXPERIMENT = "resnet_imagenet"


def run(script: str, **variables: str) -> subprocess.CompletedProcess:
    """Runs shell commands in which $H is `hortus`; several in one, as each start costs time."""
    env = {**os.environ, **variables, "H": f"{sys.executable} -m hortus.cli.main"}
    return subprocess.run(
        ["sh", "-c", script], env=env, capture_output=True, text=True, timeout=120, check=False
    )


def test_closed_streams_change_nothing_but_what_is_seen(tmp_path):
    done = run(
        f"""cd {tmp_path}
        $H validate --experiment {EXPERIMENT} >&-; echo $? >> codes
        $H validate --experiment {EXPERIMENT} 2>&-; echo $? >> codes
        $H validate --experiment none_such <&- >&- 2>&-; echo $? >> codes
        $H validate --experiment none_such >&-; echo $? >> codes"""
    )
    assert (tmp_path / "codes").read_text().split() == ["0", "0", "2", "2"]
    assert done.stdout == f"{EXPERIMENT}: valid, 0 values changed\n"
    assert done.stderr.startswith("error: unknown experiment 'none_such'")
    assert "Traceback" not in done.stderr


def test_no_file_takes_the_number_of_a_closed_stream(tmp_path):
    code = (
        "import os, sys; os.close(1); os.close(2); sys.stdout = sys.stderr = None;"
        "from hortus.cli import streams; streams.ensure();"
        f"file = open({str(tmp_path / 'checkpoint')!r}, 'w'); os.write(2, b'chatter');"
        "print('unseen'); sys.exit(file.fileno() < 3)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert (tmp_path / "checkpoint").read_text() == ""


def test_a_locale_without_utf8_shows_what_it_can():
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run(f"$H describe {EXPERIMENT} --format tree", **plain)
    assert done.returncode == 0, done.stderr
    assert "train_steps" in done.stdout


@pytest.fixture
def odd(tmp_path):
    """A folder whose name is no UTF-8."""
    folder = os.path.join(os.fsencode(tmp_path), b"run\xff")
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    return pathlib.Path(os.fsdecode(folder))


def test_the_report_of_a_folder_with_an_odd_name(odd, capsys):
    (odd / "params.yaml").write_text("trainer: {train_steps: 5}\n")
    assert main(["report", str(odd)]) == 0
    assert "<h1>run?</h1>" in (odd / "report.html").read_text("utf-8")
    assert "report.html" in capsys.readouterr().out


def test_results_of_files_with_odd_names_are_kept(odd, tmp_path):
    from hortus.vision.serving import images, predictor, results

    (odd / "a.png").write_bytes(b"no image")
    found = images.find_images([str(odd)])
    folder = results.ResultFolder(str(tmp_path / "out"), found, pictures=False)
    folder.add(predictor.Result(found[0], problem="cannot be read"))
    folder.save()
    (row,) = json.loads((tmp_path / "out" / "images.json").read_text("utf-8"))
    assert row["file_name"] == str(odd / "a.png")


def test_a_name_that_tensorflow_cannot_open_is_told(odd, capsys):
    with errors.reported() as outcome:
        str(odd).encode()
    assert outcome.code == errors.USER_MISTAKE
    assert "is no UTF-8, which TensorFlow cannot open: rename it" in capsys.readouterr().err
