"""Settings of the tests that try generated inputs: few in the tests, many where asked for.

    @fuzz.examples()
    @given(data=st.binary())
    def test_a_reader_gives_data_or_a_data_error(data): ...

HORTUS_FUZZ=10000 tries so many, other ones in each run; without it the same 200 are tried each
time, so that a failure can be repeated anywhere.
"""

import os
from collections.abc import Callable
from typing import Any

VARIABLE = "HORTUS_FUZZ"
USUAL = 200


def count() -> int:
    """How many examples to try."""
    return int(os.environ.get(VARIABLE) or USUAL)


def examples() -> Callable[[Any], Any]:
    """Decorates a hypothesis test."""
    import hypothesis

    return hypothesis.settings(
        max_examples=count(),
        derandomize=VARIABLE not in os.environ,
        deadline=None,  # other work on the machine must not fail a test
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
