"""The JAX engine. Imported only when it is used."""
