"""Tools for data sets, and generated sample data."""
