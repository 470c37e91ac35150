"""Module paths that existing programs import."""
