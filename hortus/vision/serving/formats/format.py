"""What an export format can do, and which package it needs."""

import abc
import dataclasses
import importlib
import importlib.util
from typing import Any

import numpy as np

from hortus.vision.dataloaders.errors import DataError
from hortus.vision.serving.services.service import Service


class ExportError(DataError):
    """An export is not possible, or not as good as the model; `str(error)` is for the user."""


class Runtime(abc.ABC):
    """A file that was exported, ready to run."""

    @abc.abstractmethod
    def run(self, images: np.ndarray) -> dict[str, np.ndarray]:
        """Outputs for pixels, uint8 [batch, height, width, 3], by name; see `Service.apply`."""


@dataclasses.dataclass(frozen=True)
class Format:
    """A format by name; the module `hortus.vision.serving.formats.<name>` has the rest.

    It has `write(service, model, path)`, which writes the export, and `open_runtime(path)`, which
    returns its `Runtime`.
    """

    name: str
    ending: str
    """Of the file; empty for a folder."""
    writes_with: tuple[str, ...] = ()
    """Modules of packages that writing needs, beside TensorFlow."""
    runs_with: tuple[str, ...] = ()
    """The same for running."""

    def write(self, service: Service, model: Any, path: str) -> None:
        """Writes the model, with what comes before and after it, on the TensorFlow engine.

        Raises:
            ExportError: a package is missing, or the format cannot hold the model.
        """
        self._require(self.writes_with, "written")
        self._module().write(service, model, path)

    def open_runtime(self, path: str) -> Runtime:
        """Opens what `write` has written.

        Raises:
            ExportError: a package is missing, or the file cannot be read.
        """
        self._require(self.runs_with, "run")
        return self._module().open_runtime(path)

    def require(self) -> None:
        """Raises ExportError where a package is missing to write it, or to try what was written."""
        self._require(dict.fromkeys((*self.writes_with, *self.runs_with)), "exported")

    def _module(self) -> Any:
        return importlib.import_module(f"hortus.vision.serving.formats.{self.name}")

    def _require(self, modules: Any, what: str) -> None:
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        if missing:
            raise ExportError(
                f"{self.name} models cannot be {what} without {', '.join(missing)}: "
                "pip install 'hortus[export]'"
            )


FORMATS = {
    form.name: form
    for form in (
        Format("saved_model", ""),
        Format("onnx", ".onnx", ("onnx", "tf2onnx"), ("onnxruntime",)),
        Format("litert", ".tflite", (), ("ai_edge_litert",)),
        Format("openvino", ".xml", ("openvino",), ("openvino",)),
    )
}
"""By name."""
