"""Images and the objects in them."""
