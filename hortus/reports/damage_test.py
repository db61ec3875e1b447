"""Reports of damaged folders: a page or one clear error, and always within a moment."""

import contextlib
import json
import os
import pathlib
import random
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus import hyperparams
from hortus.reports import comparison, page, runs
from hortus.reports.reports_test import write_run
from hortus.testing import damage, fuzz

ERRORS = (runs.RunError, hyperparams.ConfigError, OSError)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = write_run(tmp_path_factory.mktemp("whole") / "run")
    (folder / "class_names.json").write_text('["cat", "dog"]')
    return folder


def files_of(folder: pathlib.Path) -> list[str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [str(path.relative_to(folder)) for path in paths]


def harm(path: pathlib.Path, rng: random.Random) -> None:
    """Damages a file: its bytes or, where it is JSON, a value of the wrong kind in it."""
    if path.suffix in (".json", ".jsonl") and rng.random() < 0.7:
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        place = rng.randrange(len(lines))
        lines[place] = json.dumps(damage.data_like(json.loads(lines[place]), rng))
        path.write_text("\n".join(lines))
    else:
        path.write_bytes(damage.bytes_like(path.read_bytes(), rng))


@pytest.mark.filterwarnings("ignore::hortus.hyperparams.ConfigWarning")
@fuzz.examples()
@given(seed=st.integers(0, 2**62))
def test_a_damaged_folder_gives_a_report_or_an_error(whole, tmp_path_factory, seed):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(whole, folder)
    for name in rng.sample(files_of(folder), rng.choice((1, 1, 2))):
        harm(folder / name, rng)
    try:
        run = runs.RecordedRun(folder)
        assert page.render(run).encode("utf-8", "replace")
        comparison.render([run, runs.RecordedRun(whole)])
        comparison.config_rows([run, run])
    except ERRORS:
        pass  # said in one sentence
    finally:
        shutil.rmtree(folder)


def test_aliases_that_expand_without_end_are_refused_at_once(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    bomb = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    bomb += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    (tmp_path / "run" / "params.yaml").write_text("\n".join(bomb))
    with pytest.raises(hyperparams.ConfigError, match="more than 100000 values"):
        page.render(runs.RecordedRun(tmp_path / "run"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metrics.jsonl", '{"step": 1e400, "values": {}}\n{"step": 3, "values": {"a": 1}}\n'),
        ("metrics.jsonl", f'{{"step": 1, "values": {{"a": {"9" * 400}}}}}\n'),
        ("metrics.jsonl", f'{{"step": 2, "split": "train", "values": {"[" * 5000}\n'),
        ("metrics.jsonl", '{"step": 1, "wall_time": "now", "values": {"a": 1}}\n'),
        ("run.json", '{"starts": [{"time": 1e300, "machine": [], "origins": 5}]}'),
        ("run.json", "[" * 100_000),
        ("best/info.json", "[1, 2]"),
        ("best/info.json", '{"accuracy": "high"}'),
        ("class_names.json", '"\\ud800"'),
        ("params.yaml", "trainer: {best_checkpoint_export_subdir: [1], train_steps: yes}"),
        ("params.yaml", "\x00"),
        ("validation/events.out.tfevents.9.x", "\x18\x00\x00\x00\x00\x00\x00\x00" + "z" * 60),
    ],
)
def test_each_file_may_be_damaged(whole, tmp_path, name, content):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    (folder / name).write_text(content)
    with contextlib.ExitStack() as stack:
        if name == "params.yaml" and "\0" in content:
            stack.enter_context(pytest.raises(hyperparams.ConfigError, match=r"params\.yaml"))
        assert "<h1>run</h1>" in page.render(runs.RecordedRun(folder))


def test_a_device_or_a_pipe_in_place_of_a_file_is_not_read(whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    for name in ("metrics.jsonl", "class_names.json"):
        (folder / name).unlink()
    os.mkfifo(folder / "metrics.jsonl")
    (folder / "class_names.json").symlink_to("/dev/zero")
    run = runs.RecordedRun(folder)
    assert run.class_names == [] and run.lines == []
    (folder / "params.yaml").unlink()
    (folder / "params.yaml").symlink_to("/dev/zero")
    with pytest.raises(runs.RunError, match="is no run"):
        runs.RecordedRun(folder)
