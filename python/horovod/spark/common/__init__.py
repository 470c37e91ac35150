"""What the estimators for Keras, PyTorch and Lightning share."""
