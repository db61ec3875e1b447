import pathlib

import pytest

from hortus.testing import engines


def test_code_runs_with_the_chosen_backend():
    # keras itself is not imported, to stay quick: it reads this variable first of all.
    code = "import os; print(os.environ['KERAS_BACKEND'])"
    assert engines.run_under_engine("jax", code).strip() == "jax"


def test_what_jax_compiles_is_kept_for_the_next_process(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engines.run_under_engine("jax", "import jax.numpy as jnp; jnp.arange(3) + 1")
    kept = {path.name for path in (tmp_path / "hortus" / "tests" / "jax").iterdir()}
    assert kept
    engines.run_under_engine("jax", "import jax.numpy as jnp; jnp.arange(3) + 1")
    assert {path.name for path in (tmp_path / "hortus" / "tests" / "jax").iterdir()} == kept


def test_failing_code_raises_with_its_output():
    with pytest.raises(AssertionError, match="seven is not eight"):
        engines.run_under_engine("jax", "raise SystemExit('seven is not eight')")


def test_a_test_file_runs_its_tests_and_not_itself_again(tmp_path: pathlib.Path):
    file = tmp_path / "inner_test.py"
    file.write_text(
        "from hortus.testing import engines\n"
        "import os\n"
        "def test_backend(): assert os.environ['KERAS_BACKEND'] == 'jax'\n"
        "def test_on_jax(): engines.run_under_engine('jax', __file__)\n"
    )
    assert "1 passed, 1 skipped" in engines.run_under_engine("jax", file)


def test_a_failing_test_file_raises(tmp_path: pathlib.Path):
    file = tmp_path / "inner_test.py"
    file.write_text("def test_wrong(): assert 1 == 2\n")
    with pytest.raises(AssertionError, match="1 failed"):
        engines.run_under_engine("jax", str(file))
