"""Benchmarks of horovod.jax."""
