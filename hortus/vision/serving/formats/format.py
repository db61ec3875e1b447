"""What an export format can do, and which package it needs."""

import abc
import importlib.util
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from hortus import registry
from hortus.vision.dataloaders.errors import DataError

if TYPE_CHECKING:  # so that formats can be listed without a numerical library
    import numpy as np

    from hortus.vision.serving.services.service import Service

_FormatClass = TypeVar("_FormatClass", bound=type["Format"])

FORMATS = registry.Registry("export format")
"""By name."""
ALIASES = {"tflite": "litert"}
"""Other names of formats."""


class ExportError(DataError):
    """An export is not possible, or not as good as the model; `str(error)` is for the user."""


class Runtime(abc.ABC):
    """A file that was exported, ready to run."""

    @abc.abstractmethod
    def run(self, images: "np.ndarray") -> "dict[str, np.ndarray]":
        """Outputs for pixels, uint8 [batch, height, width, 3], by name; see `Service.apply`."""


class Format(abc.ABC):
    """A way to write a model for other runtimes.

    Modules are imported where they are needed, inside the methods.
    """

    name: str = ""
    """Set by `register_format`."""
    ending: str = ""
    """Of the file; empty for a folder."""
    writes_with: tuple[str, ...] = ()
    """Modules of packages that writing needs, beside TensorFlow."""
    runs_with: tuple[str, ...] = ()
    """The same for running."""
    install: str = "pip install 'hortus[export]'"
    """What to do where one of them is missing."""

    @abc.abstractmethod
    def write(self, service: "Service", model: Any, path: str) -> None:
        """Writes the model, with what comes before and after it, on the TensorFlow engine.

        Args:
            service: of the task; `service.exported(model, service.inputs_of_pixels(images))` is
                all that the file has to do.
            model: the Keras model.
            path: of the file, or folder, to write; nothing is there.

        Raises:
            ExportError: the format cannot hold the model.
        """

    @abc.abstractmethod
    def load(self, path: str) -> Runtime:
        """Opens what `write` has written.

        Raises:
            ExportError: the file cannot be read.
        """

    def open_runtime(self, path: str) -> Runtime:
        """Opens what `write` has written.

        Raises:
            ExportError: a package is missing, or the file cannot be read.
        """
        self._require(self.runs_with, "run")
        return self.load(path)

    def require(self) -> None:
        """Raises ExportError where a package is missing to write it, or to try what was written."""
        self._require(dict.fromkeys((*self.writes_with, *self.runs_with)), "exported")

    def _require(self, modules: Iterable[str], what: str) -> None:
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        if missing:
            raise ExportError(
                f"{self.name} models cannot be {what} without {', '.join(missing)}: {self.install}"
            )


def register_format(name: str) -> Callable[[_FormatClass], _FormatClass]:
    """Decorates a class that can write and run exports, for `hortus export --format <name>`.

        @register_format("numpy")
        class Numpy(Format):
            '''The weights alone, for NumPy.'''
            ending = ".npz"

            def write(self, service, model, path): ...
            def load(self, path): ...

    It is a `Format`, made without arguments; `Format` says what its methods receive and return.
    What is written is compared with the model on a few images, and kept only if both say the same.

    Args:
        name: what the command line calls it.
    """

    def decorator(cls: _FormatClass) -> _FormatClass:
        form = cls()
        form.name = name
        form.__doc__ = cls.__doc__
        registry.register(FORMATS, name)(form)
        return cls

    return decorator


def get_format(name: str) -> Format:
    """The format of a name, or of another name for it.

    Raises:
        RegistryError: there is none.
    """
    return registry.lookup(FORMATS, ALIASES.get(name, name))
