"""The file format of TensorFlow 2's checkpoints, read without TensorFlow."""
