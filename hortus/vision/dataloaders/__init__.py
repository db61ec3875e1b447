"""Files -> decoder -> parser -> batch, all in tf.data. It feeds both engines."""
