"""What the benchmarks of all Python front ends share; see bench/README.md."""
