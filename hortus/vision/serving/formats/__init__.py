"""Export formats by name. What writes and runs them is loaded when it is used."""

from hortus.vision.serving.formats.format import (
    ALIASES,
    FORMATS,
    ExportError,
    Format,
    Runtime,
    get_format,
    register_format,
)
from hortus.vision.serving.formats.known import LiteRT, Onnx, OpenVINO, SavedModel

__all__ = [
    "ALIASES",
    "FORMATS",
    "ExportError",
    "Format",
    "LiteRT",
    "Onnx",
    "OpenVINO",
    "Runtime",
    "SavedModel",
    "get_format",
    "register_format",
]
