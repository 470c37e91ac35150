"""Outputs that the core has allocated, as tensors that own them.

torch 2.1 does not know the bools of DLPack: they become bytes there, which callers view as bools.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import torch
import torch.utils.dlpack

from ._release import RELEASE

_KNOWS_BOOLS: Final = RELEASE >= (2, 2)
_TYPE_CODE_OFFSET: Final = 20  # of DLTensor: behind the data, the device and the number of dimensions
_UNSIGNED: Final = 1
_BOOL: Final = 6


def _describe_bools_as_bytes(capsule: Any) -> None:
    """Change the description of the memory, not the memory."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    code = ctypes.c_uint8.from_address(get_pointer(capsule, b"dltensor") + _TYPE_CODE_OFFSET)
    if code.value == _BOOL:
        code.value = _UNSIGNED


def from_dlpack(capsule: Any) -> torch.Tensor:
    """Return the tensor; of bools a tensor of bytes where torch knows no others."""
    if not _KNOWS_BOOLS:
        _describe_bools_as_bytes(capsule)
    output: torch.Tensor = torch.utils.dlpack.from_dlpack(capsule)
    return output
