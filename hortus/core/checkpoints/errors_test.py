import errno
import os
import subprocess
import sys

import pytest

from hortus.core import checkpoints
from hortus.core.checkpoints import errors


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "MB are free on the disk of"),
        (errno.EDQUOT, "MB are free on the disk of"),
        (errno.EROFS, "choose another model_dir"),
        (errno.EACCES, "choose another model_dir"),
        (errno.ENOTDIR, "A file stands where a folder is needed: look at /some/file"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EIO, "Path: /some/file"),
    ],
)
def test_errors_of_the_system_come_with_advice(tmp_path, number, advice):
    with (
        pytest.raises(errors.CheckpointError) as caught,
        errors.explain_os_errors("write the thing", str(tmp_path / "not" / "yet")),
    ):
        raise OSError(number, os.strerror(number), "/some/file")
    assert str(caught.value).startswith(f"cannot write the thing: {os.strerror(number)}.")
    assert advice in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)


def test_other_errors_pass():
    with pytest.raises(KeyError), errors.explain_os_errors("write", "/"):
        raise KeyError("x")


def test_every_public_name_is_there():
    for name in checkpoints.__all__:
        assert getattr(checkpoints, name).__name__ == name
    assert set(checkpoints.__all__) <= set(dir(checkpoints))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = checkpoints.nonsense


def test_importing_the_package_loads_no_numerical_library():
    code = (
        "import sys\n"
        "import hortus.core.checkpoints\n"
        "assert not {'numpy', 'keras', 'tensorflow', 'jax'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
