import pytest

from hortus.core import metric_factory
from hortus.registry import RegistryError


def test_a_metric_is_built_by_its_name(monkeypatch):
    monkeypatch.setattr(metric_factory, "_METRICS", type(metric_factory._METRICS)("metric"))

    @metric_factory.register_metric("sharpness")
    def build(task_config):
        """How sharp it is."""
        return f"sharpness of {task_config}"

    assert metric_factory.build_metric("sharpness", "knives") == "sharpness of knives"
    assert metric_factory.registered_metrics() == {"sharpness": "How sharp it is."}
    with pytest.raises(RegistryError, match="unknown metric 'sharpnes'; did you mean 'sharpness'"):
        metric_factory.build_metric("sharpnes", "knives")
