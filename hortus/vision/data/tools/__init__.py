"""How the data of each task is checked, drawn and converted."""
