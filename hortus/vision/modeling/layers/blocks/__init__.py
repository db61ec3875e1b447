"""Several layers that work as one, the bricks of backbones."""
