"""The settings of optimizers, learning rates and weight averages, as plain typed data."""
