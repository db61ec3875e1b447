"""From what heads say to objects."""
