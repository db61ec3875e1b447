"""What keeps a model from learning by heart."""
