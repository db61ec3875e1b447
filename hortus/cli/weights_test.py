import sys

from typer.testing import CliRunner

from hortus.cli import weights


def test_the_list_names_source_size_and_licence():
    shown = CliRunner().invoke(weights.app, ["list"])
    assert shown.exit_code == 0
    (line,) = [x for x in shown.output.splitlines() if x.startswith("torchvision/mobilenet_v2 ")]
    assert line.split()[1:4] == ["mobilenet", "3.5", "71.9"]
    assert line.endswith("BSD-3-Clause")


def test_the_list_needs_no_numerical_library():
    import subprocess

    code = (
        "import sys\nfrom hortus.vision.weights.catalog import KNOWN\n"
        "assert KNOWN and not {'keras', 'numpy', 'tensorflow', 'jax'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
