"""NCCL as a package of Python: a file that the loader does not look for."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from pathlib import Path

VARIABLE = "HOROVOD_NCCL_LIB"
_USUAL_NAME = "libnccl.so.2"


def name_packaged_nccl() -> None:
    """Name the file of nvidia-nccl-cu12 (or -cu11, -cu13) to the core, where nothing else says which to use.

    A library that a framework has brought goes first: two in a process would hold memory twice.
    """
    if VARIABLE in os.environ or _is_loaded():
        return
    try:
        found = importlib.util.find_spec("nvidia.nccl")
    except (ImportError, ValueError):  # there is no package nvidia, or it is none
        return
    for folder in (found and found.submodule_search_locations) or ():
        library = Path(folder, "lib", _USUAL_NAME)
        if library.exists():
            os.environ[VARIABLE] = str(library)
            return


def _is_loaded() -> bool:
    try:
        ctypes.CDLL(_USUAL_NAME, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True
