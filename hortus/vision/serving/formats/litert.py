"""LiteRT, once called TensorFlow Lite."""

import os
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

from hortus.vision.serving.formats.format import ExportError, Runtime
from hortus.vision.serving.formats.portable import trace
from hortus.vision.serving.services.service import Service

SIGNATURE = "image_tensor"


def write(service: Service, model: Any, path: str) -> None:
    """See `Format.write`."""
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.variables]
    concrete = trace(service, model).get_concrete_function()
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, {SIGNATURE: concrete})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[SIGNATURE])
        try:
            content = converter.convert()
        except Exception as error:
            raise ExportError(
                f"LiteRT cannot hold this model: {str(error).splitlines()[0]}"
            ) from error
    with open(path, "wb") as file:
        file.write(content)


class LiteRuntime(Runtime):
    """A LiteRT file, run by its interpreter on the CPU."""

    def __init__(self, path: str):
        from ai_edge_litert.interpreter import Interpreter

        try:
            self._interpreter = Interpreter(path, num_threads=os.cpu_count())
            self._runner = self._interpreter.get_signature_runner(SIGNATURE)
        except (ValueError, RuntimeError) as error:
            raise ExportError(f"{path}: LiteRT cannot load it: {error}") from None

    def run(self, images: np.ndarray) -> dict[str, np.ndarray]:
        return {name: np.array(value) for name, value in self._runner(images=images).items()}
