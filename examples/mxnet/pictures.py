"""Made-up pictures: each class is a pattern under noise, so that a network has something to learn."""

from __future__ import annotations

import numpy as np

CLASSES, EDGE = 10, 28


def make_pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pictures of one channel and their labels; the patterns are the same for every seed."""
    patterns = np.random.RandomState(0).rand(CLASSES, 1, EDGE, EDGE)
    generator = np.random.RandomState(seed)
    labels = generator.randint(0, CLASSES, count)
    noise = generator.rand(count, 1, EDGE, EDGE)
    return (0.6 * patterns[labels] + 0.4 * noise).astype("float32"), labels.astype("float32")
