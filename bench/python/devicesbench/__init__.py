"""What the device path costs, on stand-in GPUs (tests/standins): nothing here says how quick a GPU is."""
