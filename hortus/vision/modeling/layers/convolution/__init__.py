"""Convolutions, alone and with what follows them."""
