"""OpenVINO: an XML file with the graph, and a file with the weights beside it."""

from typing import Any

import numpy as np

from hortus.vision.serving.formats.format import ExportError, Runtime
from hortus.vision.serving.formats.portable import trace
from hortus.vision.serving.services.service import Service


def write(service: Service, model: Any, path: str) -> None:
    """See `Format.write`."""
    import openvino

    # Its loops know no values whose size is open.
    concrete = trace(service, model, unrolled=True).get_concrete_function()
    try:
        converted = openvino.convert_model(concrete)
    except Exception as error:
        raise ExportError(f"OpenVINO cannot hold this model: {error}") from error
    openvino.save_model(converted, path, compress_to_fp16=False)


class OpenVinoRuntime(Runtime):
    """An OpenVINO model, run on the CPU in float32."""

    def __init__(self, path: str):
        import openvino

        try:
            self._model = openvino.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        except RuntimeError as error:
            raise ExportError(f"{path}: OpenVINO cannot load it: {error}") from None

    def run(self, images: np.ndarray) -> dict[str, np.ndarray]:
        outputs = self._model(images)
        return {
            name: np.array(value) for port, value in outputs.items() for name in sorted(port.names)
        }
