"""Metrics by name, which a config can ask for beside those of its task."""

from collections.abc import Callable
from typing import Any, TypeVar

from hortus import registry

_Builder = TypeVar("_Builder", bound=Callable[[Any], Any])

_METRICS = registry.Registry("metric")


def register_metric(name: str) -> Callable[[_Builder], _Builder]:
    """Decorates the function that builds a metric, and makes it the metric `name`.

        @metric_factory.register_metric("confidence")
        def build_confidence(task_config):
            '''Mean of the highest score.'''
            return Confidence(name="confidence")

    `task.extra_metrics=[confidence]` measures it, in training and in evaluation; detectors measure
    it in evaluation only.

    The builder receives:
        task_config: the config of the task.

    It returns a `keras.metrics.Metric`. Its `update_state` is called with labels and outputs as the
    task's `process_metrics` hands them on: in image classification class numbers or vectors, and
    probabilities; in segmentation the dict of labels, and logits; in detection two dicts.

    Args:
        name: what configs call it; also the name under which its value is logged, if the metric has
            the same.
    """
    return registry.register(_METRICS, name)


def build_metric(name: str, task_config: Any) -> Any:
    """Builds the metric `name`.

    Raises:
        RegistryError: there is none of this name.
    """
    return registry.lookup(_METRICS, name)(task_config)


def registered_metrics() -> dict[str, str]:
    """What each registered metric measures, by name."""
    return {name: registry.summary(build) for name, build in _METRICS.items()}
