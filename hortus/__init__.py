"""hortus: train, evaluate and ship vision models with Keras 3, on TensorFlow or JAX."""

from hortus.engine import environment as _environment

__version__ = "0.1.0.dev0"

_environment.prepare()  # whatever is imported first of hortus, before it loads TensorFlow
