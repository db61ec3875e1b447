"""Models: backbones, decoders, heads, the layers they are made of, and whole models."""
