"""Where the reference data lies: facts and figures that the tests compare with."""

import os
import pathlib

VARIABLE = "HORTUS_REFERENCE"


def reference_dir() -> pathlib.Path:
    """The folder of the reference data; the calling test is skipped when there is none.

    `$HORTUS_REFERENCE` names it, otherwise it is `../shared/reference` beside the checkout.
    """
    named = os.environ.get(VARIABLE)
    checkout = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(named) if named else checkout.parent / "shared" / "reference"
    if not folder.is_dir():
        # pytest is imported here because this package is also used outside of tests.
        import pytest

        pytest.skip(f"no reference data in {folder} (set ${VARIABLE})")
    return folder
