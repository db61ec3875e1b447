"""Tasks: what is particular to each learning problem. Importing this package registers them all."""

from hortus import registry

registry.import_all(__name__)
