"""Helpers of the runner that existing programs import."""
