"""Loaders of the batches of a reader: plain, read ahead, endless, or from memory."""
