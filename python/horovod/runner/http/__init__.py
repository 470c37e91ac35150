"""A small store over HTTP, for drivers that are written in Python."""
