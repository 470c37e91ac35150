"""Measures the TensorFlow front end, also against MultiWorkerMirroredStrategy; see bench/README.md."""
