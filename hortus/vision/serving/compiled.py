"""A model that is run on images of many sizes, compiled on either engine."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from hortus.vision.serving.services.service import Service


class Compiled:
    """Runs a model on batches; few sizes of batches are compiled.

    Args:
        service: of the task.
        model: the Keras model.
    """

    def __init__(self, service: Service, model: keras.Model):
        self._service, self._model = service, _Applied(service, model)
        # XLA takes long to compile on the CPU, and would have to do without the kernel of NMS.
        if keras.backend.backend() == "tensorflow":
            self._model.jit_compile = False
        self._sizes: dict[tuple, int] = {}

    def __call__(self, ready: Sequence[Any]) -> list[Mapping[str, np.ndarray]]:
        """Outputs for each of the images, see `predictor.Ready`."""
        results: list[Mapping[str, np.ndarray]] = []
        for _, group in itertools.groupby(ready, lambda item: item.inputs["images"].shape):
            results += self.run([item.inputs for item in group])
        return results

    def run(self, inputs: Sequence[Mapping[str, np.ndarray]]) -> list[Mapping[str, np.ndarray]]:
        """Outputs for inputs of one shape."""
        count, shape = len(inputs), inputs[0]["images"].shape
        # A smaller batch, such as the last one, is filled up: a new size would be compiled anew.
        size = max(self._sizes.get(shape, 0), count)
        self._sizes[shape] = size
        padded = [*inputs, *[inputs[0]] * (size - count)]
        batch = {name: np.stack([each[name] for each in padded]) for name in inputs[0]}
        # Not compiled: the outputs of images of many sizes may have as many.
        outputs = self._service.finish(self._model.predict_on_batch(batch))
        outputs = {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}
        return [{name: value[i] for name, value in outputs.items()} for i in range(count)]


class _Applied(keras.Model):
    """The model behind its service, so that Keras compiles both together."""

    def __init__(self, service: Service, model: keras.Model):
        super().__init__(autocast=False, name="applied")
        self._service, self._inner = service, model
        self.built = True

    def call(self, inputs: Any, training: bool = False) -> Any:
        return self._service.apply(self._inner, inputs)
