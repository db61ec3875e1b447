"""Between the levels of a pyramid."""
