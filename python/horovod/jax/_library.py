"""The handlers that XLA programs call, registered with JAX.

They lie in a library beside that of the core, which must be in the process first: they then use that copy.
"""

from __future__ import annotations

import atexit
import ctypes
from pathlib import Path
from typing import Any, Final

import jax

from horovod._core import _native

OLDEST_JAX: Final = (0, 6, 2)
"""The oldest release that was tried."""

TARGET: Final = "horovod_collective"

HANDLERS: Final = {"cpu": ("cpu", "hvd_jax_cpu"), "cuda": ("CUDA", "hvd_jax_cuda")}
"""Platforms of JAX: what XLA calls them, and their handlers."""


def _check_version() -> None:
    found = tuple(int(part) for part in jax.__version_info__[:3])
    if found < OLDEST_JAX:
        oldest = ".".join(map(str, OLDEST_JAX))
        message = f"horovod.jax needs JAX {oldest} or newer, found {jax.__version__}"
        raise ImportError(message)


def _open() -> Any:
    path = Path(_native.library_path()).with_name("libhorovod_jax.so")
    if not path.exists():
        message = f"horovod.jax: {path} is missing; install the package again"
        raise ImportError(message)
    return ctypes.CDLL(str(path))


def register() -> None:
    """Make the handlers known to JAX; once per process."""
    _check_version()
    library = _open()
    for platform, function in HANDLERS.values():
        capsule = jax.ffi.pycapsule(getattr(library, function))
        jax.ffi.register_ffi_target(TARGET, capsule, platform=platform)
    library.hvd_jax_abandon.restype = None
    library.hvd_jax_abandon.argtypes = ()
    # Runs before JAX's own, which waits for programs, and after that of the core, which does nothing if the
    # program failed.
    atexit.register(library.hvd_jax_abandon)
