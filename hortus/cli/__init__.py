"""The `hortus` command."""
