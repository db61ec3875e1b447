"""Imports everything that registers itself: the only module imported for its side effects.

A training driver of your own imports it, or a module like it for your own project:

    from hortus.vision import registry_imports  # noqa: F401

Experiments are loaded at once; tasks, which need Keras, when `load_tasks` is called, as the engine
has to be settled before.
"""

import importlib

from hortus.vision import experiments  # noqa: F401


def load_tasks() -> None:
    """Registers the tasks. The engine is settled by then, see `hortus.engine.select`."""
    importlib.import_module("hortus.vision.tasks")
