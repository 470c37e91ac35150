"""Module paths that existing programs import; the code lives in horovod._core."""
