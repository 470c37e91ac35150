"""The ways to average a list of gradients with torch.distributed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
import torch.distributed as dist
from torch import Tensor

_BUCKET_BYTES: Final = 25 << 20
"""As DDP has it by default."""


def one_by_one(gradients: Sequence[Tensor], size: int) -> None:
    """Wait for each."""
    for gradient in gradients:
        dist.all_reduce(gradient)
    torch._foreach_div_(list(gradients), size)


def asynchronously(gradients: Sequence[Tensor], size: int) -> None:
    """Start all, then wait for all."""
    works = [dist.all_reduce(gradient, async_op=True) for gradient in gradients]
    for work in works:
        work.wait()
    torch._foreach_div_(list(gradients), size)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Gradients that travel in one block of memory."""

    members: Sequence[Tensor]
    flat: Tensor
    views: Sequence[Tensor]


def make_buckets(gradients: Sequence[Tensor]) -> list[Bucket]:
    """Fill buckets in order; a gradient larger than a bucket has one of its own."""
    groups: list[list[Tensor]] = [[]]
    filled = 0
    for gradient in gradients:
        if groups[-1] and filled + gradient.nbytes > _BUCKET_BYTES:
            groups.append([])
            filled = 0
        groups[-1].append(gradient)
        filled += gradient.nbytes
    return [_bucket(group) for group in groups]


def _bucket(members: Sequence[Tensor]) -> Bucket:
    flat = torch.empty(sum(member.numel() for member in members))
    parts = torch.split_with_sizes(flat, [member.numel() for member in members])
    return Bucket(
        members,
        flat,
        [part.view_as(member) for part, member in zip(parts, members, strict=True)],
    )


def in_buckets(buckets: Sequence[Bucket], size: int) -> None:
    """Copy in, start each bucket as soon as it is full, copy out."""
    works = []
    for bucket in buckets:
        torch._foreach_copy_(list(bucket.views), list(bucket.members))
        works.append(dist.all_reduce(bucket.flat, async_op=True))
    for bucket, work in zip(buckets, works, strict=True):
        work.wait()
        bucket.flat.div_(size)
        torch._foreach_copy_(list(bucket.members), list(bucket.views))
