"""Pictures of data and results, as NumPy arrays."""
