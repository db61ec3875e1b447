"""Using an export: predictions, and the metrics of its task."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hortus.core import config_definitions as cfg
from hortus.vision.serving.description import Description
from hortus.vision.serving.formats import Runtime
from hortus.vision.serving.images import decode


class ExportedCompute:
    """Runs an export on images, those of one size together; see `predictor.Compute`."""

    def __init__(self, runtime: Runtime):
        self._runtime = runtime

    def __call__(self, ready: Sequence[Any]) -> list[Mapping[str, np.ndarray]]:
        results: list[Mapping[str, np.ndarray]] = []
        for _, group in itertools.groupby(ready, lambda item: item.picture.size):
            pixels = np.stack([item.picture.pixels for item in group])
            outputs = self._runtime.run(pixels)
            results += [
                {name: value[i] for name, value in outputs.items()} for i in range(len(pixels))
            ]
        return results


def evaluate_export(
    path: str, description: Description, params: cfg.ExperimentConfig
) -> dict[str, float]:
    """The metrics of the task on the validation data, image by image.

    Losses are left out, which may need more than an export returns.

    Args:
        path: of the export.
        description: of it.
        params: the config, which may name other validation data than the training had.
    """
    import tensorflow as tf

    from hortus.core import task_factory
    from hortus.core.metrics import flat, plain, result
    from hortus.vision import registry_imports

    registry_imports.load_tasks()
    task = task_factory.get_task(params.task)
    service = description.service(params)
    runtime = description.form.open_runtime(path)
    metrics = task.build_metrics(training=False) or []
    state, steps = None, params.trainer.validation_steps
    pairs = service.build_reader().pairs()
    if steps > 0:
        pairs = pairs.take(steps * params.task.validation_data.global_batch_size)
    for example, parsed in pairs:
        picture = decode(example[service.image_key].numpy(), upright=False)
        outputs = runtime.run(picture.pixels[None])
        batch = tf.nest.map_structure(lambda value: value.numpy()[None], parsed)
        logs = service.validation_logs(task, batch, outputs, metrics)
        logs = tf.nest.map_structure(np.asarray, logs)
        state = task.aggregate_logs(state, logs)
    found = {
        metric.name: result(metric) for metric in flat(metrics) if not metric.name.endswith("loss")
    }
    if state is not None:
        found |= task.reduce_aggregated_logs(state)
    return {name: value for name, value in plain(found).items() if np.ndim(value) == 0}
