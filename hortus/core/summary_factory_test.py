import pytest

from hortus.core import summary_factory
from hortus.core.summary_manager import SummaryManager
from hortus.registry import RegistryError


def test_the_usual_one_writes_numbers(tmp_path):
    manager = summary_factory.build_summary("scalars", str(tmp_path), params=None)
    assert type(manager) is SummaryManager and manager.summary_dir == str(tmp_path)
    assert "scalars" in summary_factory.registered_summaries()


def test_hosts_that_write_nothing_have_one_without_a_folder():
    manager = summary_factory.build_summary("scalars", None, params=None)
    manager.write_summaries({"loss": 1.0})  # needs neither a folder nor a step


def test_an_unknown_name_is_told():
    with pytest.raises(RegistryError, match="unknown summary 'scalar'; did you mean 'scalars'"):
        summary_factory.build_summary("scalar", None, params=None)
