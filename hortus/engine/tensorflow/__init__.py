"""The TensorFlow engine. Imported only when it is used."""
