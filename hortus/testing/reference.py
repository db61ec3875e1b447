"""Where the reference data lies: facts and figures that the tests compare with."""

import os
import pathlib

VARIABLE = "HORTUS_REFERENCE"
CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


def reference_dir() -> pathlib.Path:
    """The folder of the reference data; the calling test is skipped when there is none.

    `$HORTUS_REFERENCE` names it, otherwise it is `tests/reference` of the checkout.
    """
    named = os.environ.get(VARIABLE)
    folder = pathlib.Path(named) if named else CHECKOUT / "tests" / "reference"
    if not folder.is_dir():
        # pytest is imported here because this package is also used outside of tests.
        import pytest

        pytest.skip(f"no reference data in {folder} (set ${VARIABLE})")
    return folder


def shared_file(name: str) -> pathlib.Path:
    """A file or folder that lies beside the checkout, in `../shared`, and cannot be part of it.

    Data sets and pretrained weights are such. The calling test is skipped where it is not there.
    """
    path = CHECKOUT.parent / "shared" / name
    if not path.exists():
        import pytest

        pytest.skip(f"{path} is not there")
    return path
