"""Failures of our operations that a framework reports as its own: recognized by what they say."""

from __future__ import annotations

import re

# The name of an operation is the program's: it need not say whose the operation is.
_OUR_TEXT = re.compile(r"\brank \d+\b|[Hh]orovod|has been shut down")
# A program of JAX that fails as soon as it is dispatched raises the status of the runtime as a ValueError.
_STATUS_TEXT = re.compile(r"^(UNKNOWN|INTERNAL|ABORTED|CANCELLED|FAILED_PRECONDITION|UNAVAILABLE): ")


def speaks_of_us(error: BaseException) -> bool:
    """Whether an error of a framework comes from one of our operations."""
    return _OUR_TEXT.search(str(error)) is not None


def is_bare_status(error: BaseException) -> bool:
    """Whether this is a status of XLA's runtime in another type of exception."""
    return isinstance(error, ValueError) and _STATUS_TEXT.search(str(error)) is not None
