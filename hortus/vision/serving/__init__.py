"""What a trained model is for: predictions for image files, and exports to other runtimes.

    from hortus.vision import serving

    predictor = serving.Predictor.from_run("/runs/shapes")
    results = predictor.predict(["photo.jpg", "more_photos/"])

Names are resolved on first use, as the engine has to be settled before Keras is loaded.
"""

import importlib
from typing import Any

from hortus import engine

_WHERE = {
    "LoadedRun": "run",
    "Predictor": "predictor",
    "export_run": "exporting",
    "find_images": "images",
    "load_run": "run",
    "read_image": "images",
}

__all__ = ["LoadedRun", "Predictor", "export_run", "find_images", "load_run", "read_image"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    engine.load()
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
