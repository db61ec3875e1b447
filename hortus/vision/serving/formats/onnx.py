"""ONNX, written by tf2onnx and run by ONNX Runtime."""

import logging
from typing import Any

import numpy as np

from hortus.vision.serving.formats.format import ExportError, Runtime
from hortus.vision.serving.formats.portable import trace
from hortus.vision.serving.formats.saved_model import PIXELS
from hortus.vision.serving.services.service import Service

OPSET = 18


def write(service: Service, model: Any, path: str) -> None:
    """See `Format.write`."""
    import tf2onnx

    logging.getLogger("tf2onnx").setLevel(logging.ERROR)
    function = trace(service, model)
    tf2onnx.convert.from_function(function, input_signature=[PIXELS], opset=OPSET, output_path=path)


class OnnxRuntime(Runtime):
    """An ONNX file, run by ONNX Runtime on the CPU."""

    def __init__(self, path: str):
        import onnxruntime

        try:
            self._session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001, its errors have no base class of their own
            raise ExportError(f"{path}: ONNX Runtime cannot load it: {error}") from None
        self._names = [output.name for output in self._session.get_outputs()]

    def run(self, images: np.ndarray) -> dict[str, np.ndarray]:
        name = self._session.get_inputs()[0].name
        outputs = self._session.run(self._names, {name: images})
        return dict(zip(self._names, outputs, strict=True))
