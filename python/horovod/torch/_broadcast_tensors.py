"""Broadcast of many tensors at once, in place."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from horovod._core.process_sets import ProcessSet

from . import _submit
from ._handles import synchronize


def broadcast_tensors(
    named: Iterable[tuple[str | None, torch.Tensor]], root_rank: int, process_set: ProcessSet
) -> None:
    """Overwrite tensors of any layout with those of the root rank."""
    pending = []
    for name, tensor in named:
        # Ranks may differ in how memory is laid out, e.g. channels_last: contiguous is sent.
        flat = tensor.detach().contiguous()
        handle = _submit.broadcast(flat, flat, root_rank, name, process_set)
        pending.append((handle, tensor, flat))
    for handle, tensor, flat in pending:
        synchronize(handle)
        if flat.data_ptr() != tensor.data_ptr():
            with torch.no_grad():
                tensor.copy_(flat)
