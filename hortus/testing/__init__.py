"""What tests share: the reference data, other engines, contract runners."""

from hortus.testing.engines import run_under_engine
from hortus.testing.reference import reference_dir, shared_file

__all__ = ["reference_dir", "run_under_engine", "shared_file"]
