"""Elastic jobs: what programs name. The launcher understands the options, and refuses such jobs yet."""
