"""Numbers of hvd.h that front ends pass on: kinds, dtypes, reduction operations."""

from __future__ import annotations

from typing import Final

ALLREDUCE: Final = 0
ALLGATHER: Final = 1
BROADCAST: Final = 2
ALLTOALL: Final = 5
BARRIER: Final = 6
REDUCESCATTER: Final = 7

AVERAGE: Final = 0
SUM: Final = 1
ADASUM: Final = 2
MIN: Final = 3
MAX: Final = 4
PRODUCT: Final = 5

UINT8: Final = 0
INT8: Final = 1
UINT16: Final = 2
INT16: Final = 3
INT32: Final = 4
INT64: Final = 5
FLOAT16: Final = 6
FLOAT32: Final = 7
FLOAT64: Final = 8
BOOL: Final = 9
BFLOAT16: Final = 10

NO_WIRE_DTYPE: Final = -1
"""Tensors travel in their own dtype."""

GLOBAL_PROCESS_SET: Final = 0

# What process set calls answer instead of an id, a rank or a size.
PROCESS_SET_ERROR_INIT: Final = -1
PROCESS_SET_ERROR_DYNAMIC: Final = -2
PROCESS_SET_ERROR_UNKNOWN_SET: Final = -3
PROCESS_SET_ERROR_FOREIGN_SET: Final = -4
PROCESS_SET_ERROR_SHUTDOWN: Final = -5
PROCESS_SET_ERROR_EXISTING_SET: Final = -6

REDUCE_OP_NAMES: Final = ("Average", "Sum", "Adasum", "Min", "Max", "Product")
