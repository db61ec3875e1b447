"""Registries, by the name that the documents give them; see `hortus.registry`."""

from hortus.registry import Registry, RegistryError, lookup, register

__all__ = ["Registry", "RegistryError", "lookup", "register"]
