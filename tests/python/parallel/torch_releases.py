"""What older releases of torch do not have: marks that skip by name."""

from __future__ import annotations

import inspect

import pytest
import torch
import torch.distributed as dist

from horovod.torch._release import RELEASE


def since(major: int, minor: int, what: str) -> pytest.MarkDecorator:
    """Skip before a release of torch."""
    return pytest.mark.skipif((major, minor) > RELEASE, reason=f"{what} came with torch {major}.{minor}")


needs_graphs = since(2, 4, "operations in graphs")
needs_fused = since(2, 4, "fused optimizers on CPUs")
needs_fsdp2 = since(2, 7, "fully_shard on CPUs")
needs_scaler = pytest.mark.skipif(
    not hasattr(torch.amp, "GradScaler"), reason="GradScaler on CPUs came with torch 2.3"
)
needs_order = pytest.mark.skipif(
    "sort_ranks" not in inspect.signature(dist.distributed_c10d._new_group_with_tag).parameters,
    reason="this release sorts the ranks of groups",
)
