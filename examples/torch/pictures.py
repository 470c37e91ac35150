"""Pictures to learn from, made here, so that no example has to download anything."""

from __future__ import annotations

import torch
from torch.nn import functional
from torch.utils.data import TensorDataset

CLASSES = 10
SIDE = 28


def make_pictures(count: int, *, seed: int, noise: float = 2.5) -> TensorDataset:
    """Make pictures of 28 x 28 points in ten classes, as in MNIST.

    Each class has a pattern of smooth spots; a picture is its pattern, shifted a little, under noise. The
    patterns are always the same, the pictures follow from the seed: every worker makes the same ones.
    """
    patterns = _patterns()
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=random)
    images = patterns[labels]
    shifts = torch.randint(-3, 4, (count, 2), generator=random)
    for down in range(-3, 4):
        for right in range(-3, 4):
            chosen = (shifts == torch.tensor([down, right])).all(dim=1)
            images[chosen] = images[chosen].roll((down, right), dims=(-2, -1))
    images += noise * torch.randn(images.shape, generator=random)
    return TensorDataset(images, labels)


def _patterns() -> torch.Tensor:
    random = torch.Generator().manual_seed(2019)
    spots = torch.randn(CLASSES, 1, 7, 7, generator=random)
    return functional.interpolate(spots, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
