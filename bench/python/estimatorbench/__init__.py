"""How quickly the estimators feed rows to training."""
