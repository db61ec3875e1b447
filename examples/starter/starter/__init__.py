"""A project that begins here."""
