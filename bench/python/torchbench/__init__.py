"""Measures the PyTorch front end against torch.distributed on Gloo; see bench/README.md."""
