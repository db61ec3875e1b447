"""hortus: train, evaluate and ship vision models with Keras 3, on TensorFlow or JAX."""

__version__ = "0.1.0.dev0"
