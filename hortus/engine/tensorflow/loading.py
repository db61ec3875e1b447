"""Loading TensorFlow without what it says of itself."""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

_CHATTER = re.compile(
    r"absl::InitializeLog\(\) is called"
    r"|^[IW]\d{4} .*(port\.cc|cpu_feature_guard\.cc|cudart_stub\.cc|cuda_.*\.cc)"
    r"|^I\d{4} "
)
"""Lines that tell every user the same, in spite of TF_CPP_MIN_LOG_LEVEL."""


def load() -> None:
    """Imports TensorFlow; its warnings and errors are shown, its chatter is not."""
    if "tensorflow" in sys.modules:
        return
    with _without_chatter():
        import tensorflow  # noqa: F401


@contextlib.contextmanager
def _without_chatter() -> Iterator[None]:
    """Holds back what C++ code writes to stderr, and then writes all but the chatter."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") == "0":  # somebody wants to see it
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        stderr = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            held.seek(0)
            for line in held.read().decode(errors="replace").splitlines(keepends=True):
                if not _CHATTER.search(line):
                    sys.stderr.write(line)
