"""Imports everything that registers itself: the only module imported for its side effects.

A training driver of your own imports it, or a module like it for your own project:

    from hortus.vision import registry_imports  # noqa: F401
"""

from hortus.vision import experiments  # noqa: F401
