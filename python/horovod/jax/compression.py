"""Ways in which arrays travel.

In an allreduce the core converts float32 on the wire: nothing is copied for it, and sums are computed in
float32. A reducescatter has no such wire: arrays are converted before it and summed in the smaller dtype.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from horovod._core import codes

_DTYPES = {codes.FLOAT16: jnp.float16, codes.BFLOAT16: jnp.bfloat16}


class Compressor:
    """How arrays travel: a dtype of the core, for float32 sums and averages."""

    wire = codes.NO_WIRE_DTYPE

    @classmethod
    def wire_for(cls, array: Any, op: int) -> int:
        """Return the dtype on the wire for an array; others than float32 travel as they are."""
        fits = array.dtype == jnp.float32 and op in (codes.SUM, codes.AVERAGE)
        return cls.wire if fits else codes.NO_WIRE_DTYPE

    @classmethod
    def converted(cls, array: Any, op: int) -> Any:
        """Return an array in the dtype that it would have on the wire."""
        wire = cls.wire_for(array, op)
        return array if wire == codes.NO_WIRE_DTYPE else array.astype(_DTYPES[wire])


class NoneCompressor(Compressor):
    """As they are."""


class FP16Compressor(Compressor):
    """As float16."""

    wire = codes.FLOAT16


class BF16Compressor(Compressor):
    """As bfloat16, which has the range of float32."""

    wire = codes.BFLOAT16


class Compression:
    """The compressors that there are."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
