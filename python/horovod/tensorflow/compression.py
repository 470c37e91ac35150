"""Compression of tensors for their way between ranks.

The compressors here are done by the core while it copies float32 tensors of an allreduce with Sum
or Average: no extra pass over memory, and the ranks are added in float32. Other dtypes and
operations, and compressors of the user's own, are converted before and after.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from horovod._core.codes import AVERAGE, BFLOAT16, FLOAT16, NO_WIRE_DTYPE, SUM


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


def _compress(tensor: Any, dtype: Any) -> tuple[Any, Any]:
    return (tf.cast(tensor, dtype) if tensor.dtype.is_floating else tensor), tensor.dtype


def _decompress(tensor: Any, ctx: Any) -> Any:
    return tf.cast(tensor, ctx) if ctx.is_floating else tensor


class FP16Compressor(Compressor):
    """Sends floating-point tensors as float16."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Convert; what is not floating-point stays."""
        return _compress(tensor, tf.float16)

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Convert back."""
        return _decompress(tensor, ctx)


class BF16Compressor(Compressor):
    """Sends floating-point tensors as bfloat16: less precise than float16, but no overflow."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Convert; what is not floating-point stays."""
        return _compress(tensor, tf.bfloat16)

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Convert back."""
        return _decompress(tensor, ctx)


class Compression:
    """The compressors to choose from."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


_WIRE_DTYPES: dict[Any, int] = {FP16Compressor: FLOAT16, BF16Compressor: BFLOAT16}


def wire_dtype(compression: Any, dtype: Any, op: int) -> int | None:
    """Return how the core is to send an allreduce, or None: compress and decompress are needed."""
    if compression is NoneCompressor:
        return NO_WIRE_DTYPE
    code = _WIRE_DTYPES.get(compression)
    if code is not None and dtype == tf.float32 and op in (SUM, AVERAGE):
        return code
    return None
