"""Weights of other programs in our models: which tensor is which weight, as data, per family."""
