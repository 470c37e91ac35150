"""The collectives of the framework that Keras runs on.

Each module of this folder offers the same: `Compression`, `make_reducer(options)`, and on values
`allreduce`, `allgather`, `broadcast`, `reducescatter`, `broadcast_variables`, `read_variable`,
`write_variable`; `in_graph`.
"""

from __future__ import annotations

import importlib
from typing import Any

_KNOWN = ("tensorflow", "torch", "jax")


def backend_module(name: str) -> Any:
    """Return the module for a backend of Keras."""
    if name not in _KNOWN:
        message = f"horovod.keras works on the backends {', '.join(_KNOWN)} of Keras, got '{name}'"
        raise ValueError(message)
    return importlib.import_module(f"{__name__}.{name}")
