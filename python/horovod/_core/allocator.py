"""An allocator setting that keeps freed memory, for programs that free and allocate it every step.

By default glibc returns large blocks to the system at once, and every training step pays thousands
of page faults to get them back. Opt-in, because memory once used is then kept until the process ends.
"""

from __future__ import annotations

import ctypes
import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ALLOCATOR_VARIABLE: Final = "HOROVOD_TUNE_ALLOCATOR"

# Parameters of mallopt in malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_MAX: Final = -4
_TOP_PAD_BYTES: Final = 64 << 20

_log = logging.getLogger("horovod")


def tune_allocator() -> bool:
    """Make malloc keep freed memory instead of returning it; False where malloc has no such setting.

    Call it once, after the framework is imported and before training. Memory in use does not grow,
    but what the largest step needed stays with the process.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        _log.warning("tune_allocator: the C library of this system has no mallopt; nothing changed")
        return False
    mallopt.argtypes = (ctypes.c_int, ctypes.c_int)
    mallopt.restype = ctypes.c_int
    settings = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, -1), (_M_TOP_PAD, _TOP_PAD_BYTES))
    refused = [parameter for parameter, value in settings if mallopt(parameter, value) != 1]
    if refused:
        _log.warning("tune_allocator: malloc refused settings %s; page faults may remain", refused)
    return not refused


def tuning_requested(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for it."""
    text = environment.get(ALLOCATOR_VARIABLE, "").strip()
    if text not in ("", "0", "1"):
        msg = f"{ALLOCATOR_VARIABLE}: expected 0 or 1, got '{text}'"
        raise ValueError(msg)
    return text == "1"
