"""Measurements of jobs that Spark starts."""
