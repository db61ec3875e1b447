"""Images and the classes that they show."""
