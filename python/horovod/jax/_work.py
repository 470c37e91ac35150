"""Programs that were dispatched and have not ended: JAX starts them later, one after the other."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import jax

from . import _primitive


@functools.cache
def _program() -> Any:
    return jax.jit(lambda x: x + 1)


def finish() -> None:
    """Wait until what this process has dispatched is over.

    Errors are no matter here: whoever reads the results sees them.
    """
    if not _primitive.has_programs():
        return
    for array in jax.live_arrays():
        with contextlib.suppress(Exception):  # deleted, or failed
            array.block_until_ready()
    # Results that nobody has kept: a program of this thread begins when those before it have ended.
    with contextlib.suppress(Exception):
        jax.block_until_ready(_program()(0))
