"""Checkpoints of the TensorFlow Model Garden.

They are object graphs. What a subclassed layer holds is named by its attributes. The layers of a
Functional model are only counted, by their depth in the graph, which says little; but each variable
also keeps the name that it was made with, and that counts layers of a kind as they were made.
"""
