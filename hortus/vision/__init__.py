"""Vision: models, data, losses, tasks and recipes. Importing it loads nothing else."""
