"""Compression of tensors for their way between ranks.

Trainers let the core do it while it copies float32 gradients: no extra pass over memory, and the ranks are
added in float32. Other dtypes, and compressors of the user's own, are converted before and after.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from horovod._core.codes import FLOAT16, NO_WIRE_DTYPE


class Compressor:
    """What a compressor offers: subclass it for your own."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Return the tensor to send, and what decompress needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Undo compress on what came back."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Return the tensor itself."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:  # noqa: ARG004
        """Return the tensor itself."""
        return tensor


def _is_floating(dtype: Any) -> bool:
    return "float" in str(dtype)


class FP16Compressor(Compressor):
    """Sends floating-point tensors as float16."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Convert; what is not floating-point stays."""
        dtype = tensor.dtype
        return (tensor.astype("float16", copy=False) if _is_floating(dtype) else tensor), dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Convert back."""
        return tensor.astype(ctx, copy=False) if _is_floating(ctx) else tensor


class Compression:
    """The compressors to choose from."""

    none = NoneCompressor
    fp16 = FP16Compressor


def wire_dtype(compression: Any, tensor: Any) -> int | None:
    """Return how the core is to send a sum or an average, or None: compress and decompress are needed."""
    if compression is NoneCompressor:
        return NO_WIRE_DTYPE
    if compression is FP16Compressor and np.dtype(tensor.dtype) == np.float32:
        return FLOAT16
    return None
