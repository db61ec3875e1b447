"""From a task's config to the kind of its data, and to the module that looks after this kind."""

import importlib
import importlib.util
import types
from typing import Any

from hortus.vision.dataloaders.errors import DataError

_KINDS = {
    "ImageClassificationTask": "classification",
    "DetectionTask": "detection",
    "SemanticSegmentationTask": "segmentation",
}
"""By the name of the task's config class, so that a kind is imported only when it is used."""


def kind_of(task_config: Any) -> str:
    """What sort of data a task learns from: `classification`, `detection` or `segmentation`.

    Raises:
        DataError: there are no tools for this task's data.
    """
    for base in type(task_config).__mro__:
        if base.__name__ in _KINDS:
            return _KINDS[base.__name__]
    raise DataError(
        f"there are no data tools for {type(task_config).__name__}, only for "
        f"{', '.join(_KINDS)} and what is derived from them"
    )


def module_for(package: str, task_config: Any) -> types.ModuleType:
    """The module of `package` that is named for the kind of a task's data.

    Raises:
        DataError: the package has none.
    """
    kind = kind_of(task_config)
    name = f"{package}.{kind}"
    if importlib.util.find_spec(name) is None:
        what = package.rpartition(".")[2]
        raise DataError(f"{what} of {kind} data are not available: there is no module {name}")
    return importlib.import_module(name)
