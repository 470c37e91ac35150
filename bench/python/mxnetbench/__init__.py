"""Measurements of the MXNet front end; see bench/README.md."""
