"""How each task is served: from an image to the model's input, and from its output on."""
