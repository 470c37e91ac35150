"""Short names for the calls of the compiled module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from horovod._core import _native

if TYPE_CHECKING:
    import torch

ALLREDUCE, ALLGATHER, BROADCAST = 0, 1, 2
UINT8, INT32, FLOAT32, BOOL, BFLOAT16 = 0, 4, 7, 9, 10
SUM = 1
DEFAULT, WAITER = 0, 2


def start() -> None:
    """Begin a job of one rank, whatever the environment says."""
    _native.init((0, 1, 0, 1, 0, 1), None, [], True, DEFAULT)


def submit(
    tensor: torch.Tensor,
    owner: object,
    name: str | None = None,
    *,
    kind: int = ALLREDUCE,
    dtype: int = FLOAT32,
    output: int | None = None,
    notify: bool = False,
) -> int:
    """Submit a tensor; in place unless an output is given, 0 for one that the core allocates."""
    address = tensor.data_ptr()
    target = address if output is None else output
    return _native.submit(
        kind=kind,
        dtype=dtype,
        reduce_op=SUM,
        shape=tensor.shape,
        input=address,
        output=target,
        name=name,
        owner=owner,
        notify=notify,
    )


def run(tensor: torch.Tensor, name: str | None = None) -> None:
    """Reduce a tensor in place."""
    address = tensor.data_ptr()
    _native.run(
        kind=ALLREDUCE,
        dtype=FLOAT32,
        reduce_op=SUM,
        shape=tensor.shape,
        input=address,
        output=address,
        name=name,
        owner=tensor,
    )
