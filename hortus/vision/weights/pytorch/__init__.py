"""Weights of PyTorch models: state dicts of torchvision, timm and others."""
