"""Images and the class of each pixel."""
