"""Compression of tensors for their way between ranks.

The compressors here are done by the core while it copies float32 tensors of an allreduce with Sum
or Average: no extra pass over memory, and the ranks are added in float32. Other dtypes and
operations, and compressors of the user's own, are converted before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from horovod._core.codes import AVERAGE, BFLOAT16, FLOAT16, NO_WIRE_DTYPE, SUM


class Compressor:
    """What a compressor offers: subclass it for your own."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Return the tensor to send, and what decompress needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Undo compress on what came back."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Return the tensor itself."""
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:  # noqa: ARG004
        """Return the tensor itself."""
        return tensor


def _decompress(tensor: torch.Tensor, ctx: torch.dtype) -> torch.Tensor:
    return tensor.to(ctx) if ctx.is_floating_point else tensor


class FP16Compressor(Compressor):
    """Sends floating-point tensors as float16."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.dtype]:
        """Convert; what is not floating-point stays."""
        dtype = tensor.dtype
        return (tensor.to(torch.float16) if dtype.is_floating_point else tensor), dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: torch.dtype) -> torch.Tensor:
        """Convert back."""
        return _decompress(tensor, ctx)


class BF16Compressor(Compressor):
    """Sends floating-point tensors as bfloat16: less precise than float16, but no overflow."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.dtype]:
        """Convert; what is not floating-point stays."""
        dtype = tensor.dtype
        return (tensor.to(torch.bfloat16) if dtype.is_floating_point else tensor), dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: torch.dtype) -> torch.Tensor:
        """Convert back."""
        return _decompress(tensor, ctx)


class Compression:
    """The compressors to choose from."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


_WIRE_DTYPES: dict[Any, int] = {FP16Compressor: FLOAT16, BF16Compressor: BFLOAT16}


def wire_dtype(compression: Any, dtype: torch.dtype, op: int) -> int | None:
    """Return how the core is to send an allreduce, or None: compress and decompress are needed."""
    if compression is NoneCompressor:
        return NO_WIRE_DTYPE
    code = _WIRE_DTYPES.get(compression)
    if code is not None and dtype is torch.float32 and op in (SUM, AVERAGE):
        return code
    return None


def group_wire_dtype(compression: Any, tensors: Sequence[torch.Tensor], op: int) -> int | None:
    """Return how the core is to send all tensors of a group, or None as wire_dtype does.

    On a device the framework converts: the core sends what it is given.
    """
    if compression is not NoneCompressor and not all(tensor.is_cpu for tensor in tensors):
        return None
    wires = {wire_dtype(compression, tensor.dtype, op) for tensor in tensors}
    return wires.pop() if len(wires) == 1 else None
