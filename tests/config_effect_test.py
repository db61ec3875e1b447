"""No field of a config is without effect and silent about it."""

import importlib
import pathlib
import re

import pytest

import hortus
from hortus import hyperparams

MODULES = [
    "hortus.core.config_definitions",
    "hortus.vision.configs.backbones",
    "hortus.vision.configs.common",
    "hortus.vision.configs.decoders",
    "hortus.vision.configs.detection",
    "hortus.vision.configs.image_classification",
    "hortus.vision.configs.retinanet",
    "hortus.vision.configs.semantic_segmentation",
]
TO_COME = {"mask_binarize_threshold": "masks are read for two-stage detectors"}
CHECKED = {"allow_subdirs_outside": "the check of its own config heeds it, and nothing else does"}


@pytest.fixture(scope="module")
def code():
    """All code that could heed a config: not the configs themselves, nor tests."""
    root = pathlib.Path(hortus.__file__).parent
    paths = [
        path
        for path in sorted(root.rglob("*.py"))
        if not {"configs", "experiments"} & set(path.parts)
        and not path.name.endswith(("_test.py", "config_definitions.py"))
    ]
    return "\n".join(path.read_text() for path in paths)


@pytest.mark.parametrize("name", MODULES)
def test_each_field_is_read_or_marked_as_inert(name, code):
    module = importlib.import_module(name)
    classes = [
        cls
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, hyperparams.Config) and cls.__module__ == name
    ]
    silent = [
        f"{cls.__name__}.{field}"
        for cls in classes
        for field, spec in cls._fields().items()
        if not spec.inert
        and field not in TO_COME
        and field not in CHECKED
        # As an attribute, a key, an argument or a parameter.
        and not re.search(rf"[.\"']{field}\b|\b{field}\s*[:=]", code)
    ]
    assert classes and not silent
