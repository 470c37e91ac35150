"""A rank that others wait for shows where it is.

When an operation stalls, peers send the late process a signal, and its Python stacks go to standard
error. faulthandler writes them from the signal handler: it needs no GIL and no living interpreter
loop, so it also shows a rank that hangs in C code.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from typing import Final

from . import _native

_STDERR: Final = 2
_SPARED: Final = 8
"""Real-time signals at each end of the range that libraries take by habit."""

_registered: int | None = None


def _free_signal() -> int | None:
    # SIGUSR1 and SIGUSR2 belong to users and to schedulers, who may install handlers after init.
    for number in range(signal.SIGRTMIN + _SPARED, signal.SIGRTMAX - _SPARED):
        if signal.getsignal(number) == signal.SIG_DFL:
            return number
    return None


def arm() -> None:
    """Let peers ask this process for its stacks; HOROVOD_STALL_STACKS=0 turns it off.

    The handler stays for the life of the process: a signal may arrive late, and its default action
    is to kill.
    """
    global _registered  # noqa: PLW0603 - a signal handler is a property of the process
    if os.environ.get("HOROVOD_STALL_STACKS", "1").strip() == "0":
        _native.set_stall_signal(0)
        return
    if _registered is None:
        number = _free_signal()
        if number is None:
            return
        faulthandler.register(number, file=_STDERR, all_threads=True, chain=False)
        _registered = number
    _native.set_stall_signal(_registered)
