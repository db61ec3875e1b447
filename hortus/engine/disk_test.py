import errno

import pytest

from hortus.engine import disk
from hortus.engine.environment import EngineError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "a"), True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), True),
        (OSError("write failed: No space left on device"), True),
        (RuntimeError("a/b.data-00000: No space left on device"), True),
        (disk.full_error("."), True),
        (OSError(errno.EACCES, "Permission denied", "No space left on device"), False),
        (MemoryError(), False),
        (RuntimeError("OOM when allocating tensor with shape[1]"), False),
        # Its text was written for the user already.
        (EngineError("cannot write: No space left on device. Free some space"), False),
    ],
)
def test_a_full_disk_is_told_from_other_faults(error, expected):
    assert disk.is_full(error) is expected


def test_the_message_names_the_disk_and_what_to_do(tmp_path):
    message = str(disk.full_error(tmp_path / "to" / "come"))
    assert str(tmp_path / "to" / "come") in message
    assert str(disk.full_error(None)).startswith("a disk is full: free some space")
    assert "MB are free" in message and "start the same command again" in message
