"""Typed schemas of the vision experiments; they import no numerical library."""
