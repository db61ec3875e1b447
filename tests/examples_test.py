"""The examples run, and do what they say."""

import pathlib
import subprocess
import sys

import numpy as np
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_the_demo_trains_resumes_and_draws(tmp_path):
    code = (
        "import pathlib, sys\n"
        f"sys.path.insert(0, {str(ROOT / 'examples/shapes')!r})\n"
        "from hortus import engine\n"
        "engine.select('tensorflow')\n"
        "import demo\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "short = ['trainer.validation_interval=2,trainer.checkpoint_interval=2']\n"
        "demo.main(folder, train_images=16, overrides=['trainer.train_steps=2', *short])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    assert "validation pictures are recognised" in first.stdout
    for name in ("predictions.png", "confusion_matrix.png"):
        picture = np.asarray(Image.open(tmp_path / name))
        assert picture.std() > 10, f"{name} is blank"
    assert (tmp_path / "run" / "ckpt-2").is_dir()
    assert (tmp_path / "run" / "best").is_dir()
