"""The export formats of hortus."""

from typing import TYPE_CHECKING, Any

from hortus.vision.serving.formats.format import Format, Runtime, register_format

if TYPE_CHECKING:
    from hortus.vision.serving.services.service import Service


@register_format("saved_model")
class SavedModel(Format):
    """A folder for TensorFlow and TensorFlow Serving."""

    def write(self, service: "Service", model: Any, path: str) -> None:
        from hortus.vision.serving.formats import saved_model

        saved_model.write(service, model, path)

    def load(self, path: str) -> Runtime:
        from hortus.vision.serving.formats import saved_model

        return saved_model.SavedModelRuntime(path)


@register_format("onnx")
class Onnx(Format):
    """A file for ONNX Runtime and whatever else reads ONNX."""

    ending, writes_with, runs_with = ".onnx", ("onnx", "tf2onnx"), ("onnxruntime",)

    def write(self, service: "Service", model: Any, path: str) -> None:
        from hortus.vision.serving.formats import onnx

        onnx.write(service, model, path)

    def load(self, path: str) -> Runtime:
        from hortus.vision.serving.formats import onnx

        return onnx.OnnxRuntime(path)


@register_format("litert")
class LiteRT(Format):
    """A file for LiteRT, formerly TensorFlow Lite, on phones and small devices."""

    ending, runs_with = ".tflite", ("ai_edge_litert",)

    def write(self, service: "Service", model: Any, path: str) -> None:
        from hortus.vision.serving.formats import litert

        litert.write(service, model, path)

    def load(self, path: str) -> Runtime:
        from hortus.vision.serving.formats import litert

        return litert.LiteRuntime(path)


@register_format("openvino")
class OpenVINO(Format):
    """A pair of files for Intel's OpenVINO."""

    ending, writes_with, runs_with = ".xml", ("openvino",), ("openvino",)

    def write(self, service: "Service", model: Any, path: str) -> None:
        from hortus.vision.serving.formats import openvino

        openvino.write(service, model, path)

    def load(self, path: str) -> Runtime:
        from hortus.vision.serving.formats import openvino

        return openvino.OpenVinoRuntime(path)
