"""The registered recipes of the vision tasks; importing this package registers them all."""

from hortus import registry

registry.import_all(__name__)
