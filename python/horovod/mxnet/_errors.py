"""Exceptions of operations that block.

What MXNet's engine runs fails with MXNet's own MXNetError, at the next read of an array that depends on it.
Operations that block raise where they are called, what programs for the original catch: an MXNetError too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from horovod._core.errors import HorovodInternalError

from ._framework import mx


class OperationError(HorovodInternalError, mx.base.MXNetError):
    """A peer, the system or a disagreement of the ranks made an operation fail."""


class ArgumentError(mx.base.MXNetError, ValueError):
    """An operation was given what it cannot use."""


@contextmanager
def as_mxnet_errors() -> Iterator[None]:
    """Let what the core raises be an MXNetError as well."""
    try:
        yield
    except HorovodInternalError as error:
        raised = OperationError(str(error))
        raised.status = error.status
        raise raised from error
    except mx.base.MXNetError:
        raise
    except ValueError as error:
        raise ArgumentError(str(error)) from error
