import os
import pathlib

from hortus.core.run_folder import RunFolder


def test_every_file_is_inside_of_the_folder():
    folder = RunFolder(pathlib.Path("runs") / "mine")
    assert os.fspath(folder) == str(folder) == os.path.join("runs", "mine")
    assert folder.name == "mine"
    assert folder.params == os.path.join("runs", "mine", "params.yaml")
    assert folder.checkpoint(7) == os.path.join("runs", "mine", "ckpt-7")
    assert folder.best_info("best") == os.path.join("runs", "mine", "best", "info.json")
    named = [name for name, kind in vars(RunFolder).items() if isinstance(kind, property)]
    paths = {getattr(folder, name) for name in named if name != "name"}
    assert len(paths) == len(named) - 1  # no two of them alike
    assert {os.path.dirname(path) for path in paths} == {folder.path}


def test_nobody_else_joins_these_names():
    names = {
        os.path.basename(path)
        for path in (
            RunFolder("").params,
            RunFolder("").record,
            RunFolder("").metrics,
            RunFolder("").class_names,
            RunFolder("").lock,
            RunFolder("").report,
            RunFolder("").early_stopping,
            RunFolder("").averages,
        )
    }
    root = pathlib.Path(__file__).parent.parent
    found = [
        f"{path.relative_to(root)}: {name}"
        for path in root.rglob("*.py")
        if not path.name.endswith("_test.py") and path.name != "run_folder.py"
        for name in names
        if f'"{name}"' in path.read_text("utf-8")
    ]
    assert found == []
