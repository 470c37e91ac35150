"""Where a collective makes sense: one device of a process, arrays of this process."""

from __future__ import annotations

import logging
from typing import Any

import jax

from horovod._core import codes
from horovod._core.process_sets import ProcessSet

from ._spec import LINEAR_OPS

_logger = logging.getLogger("horovod")
_MODULAR = ("uint32", "uint64")
_NAMES = codes.REDUCE_OP_NAMES


def check_place(operation: str) -> None:
    """Refuse a process with several local devices: XLA would run the operation once on each."""
    count = jax.local_device_count()
    if count > 1:
        message = (
            f"{operation}: this process has {count} local devices, horovod.jax works with one per process. "
            f"Start a process per device (horovodrun -np {count} ...), unset "
            "--xla_force_host_platform_device_count and jax_num_cpu_devices, and leave out pmap and "
            "shard_map: the ranks are what they would map over"
        )
        raise ValueError(message)


def warn_about_distributed() -> None:
    """Say what it means that jax.distributed is initialized as well; after hvd.init()."""
    is_initialized = getattr(jax.distributed, "is_initialized", None)
    if is_initialized is None or not is_initialized():
        return
    _logger.warning(
        "jax.distributed is initialized (process %d of %d): horovod does not need it. Its collectives work "
        "on arrays of this process alone; arrays that span processes are refused, and hvd.rank() need not be "
        "jax.process_index()",
        jax.process_index(),
        jax.process_count(),
    )


def check_array(operation: str, array: Any) -> None:
    """Refuse an array that is spread over processes or devices."""
    if isinstance(array, jax.core.Tracer) or not isinstance(array, jax.Array):
        return
    if not array.is_fully_addressable or len(array.devices()) > 1:
        message = (
            f"{operation}: got an array on {len(array.devices())} devices of jax.distributed or of a mesh; "
            "horovod works on arrays of one process on one device"
        )
        raise ValueError(message)


def check_reduction(operation: str, dtype: Any, op: int, *factors: float) -> None:
    """Refuse reductions that the core cannot compute; sums of unsigned numbers are sums of signed ones."""
    if op not in range(len(_NAMES)):
        message = f"{operation}: reduce op {op} is not valid"
        raise ValueError(message)
    name = dtype.name
    if name.startswith(("float8", "int4", "uint4", "int2", "uint2", "float4", "key<")):
        message = f"{operation}: arrays of {name} cannot be reduced; convert them first"
        raise TypeError(message)
    if name in _MODULAR and op != codes.SUM:
        message = f"{operation}: arrays of {name} support op=Sum alone, got {_NAMES[op]}"
        raise TypeError(message)
    if name in _MODULAR and any(factor != 1.0 for factor in factors):
        message = (
            f"{operation}: sums of {name} cannot be scaled, got factors {' and '.join(map(str, factors))}; "
            "scale the result, or convert the array to a float first"
        )
        raise TypeError(message)
    if name.startswith("complex") and op not in LINEAR_OPS:
        message = f"{operation}: arrays of {name} support op=Sum and op=Average, got {_NAMES[op]}"
        raise TypeError(message)


def members(operation: str, process_set: ProcessSet) -> tuple[int, int]:
    """Return size of the set and rank in it of this process, which must be a member."""
    size, rank = process_set.size(), process_set.rank()
    if size is None or rank is None:
        message = f"{operation}: {process_set} is not registered; give it to hvd.init or hvd.add_process_set"
        raise ValueError(message)
    return size, rank
