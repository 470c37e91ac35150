"""The function that Spark runs in each task, and what comes back from it as rows.

The function is sent by value: it must be able to say that horovod is missing, or another one, without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ._order import Order

SCHEMA = "rank int, position int, part binary"
PART_BYTES = 4 << 20

REFUSAL = "horovod.spark refuses this task: "
"""Begins what a task says that cannot take part at all; the driver looks for it."""


def make_task(order: Order, *, is_elastic: bool = False) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function of the tasks: one empty partition each, rows of SCHEMA back."""
    plain, version, refusal = order.to_plain(), order.version, REFUSAL

    # Nested functions travel by value. This one uses nothing but its own variables until versions agree.
    def task(batches: Iterable[Any]) -> Iterator[Any]:
        import socket  # noqa: PLC0415
        import sys  # noqa: PLC0415

        for _ in batches:
            pass
        where = f"{sys.executable} on host {socket.gethostname()}"
        try:
            import horovod  # noqa: PLC0415
        except ImportError as error:
            message = (
                f"{refusal}{where} cannot import horovod ({error}); "
                f"install horovod {version} for the Python of the Spark executors"
            )
            raise RuntimeError(message) from None
        if horovod.__version__ != version:
            message = (
                f"{refusal}{where} has horovod {horovod.__version__}, the driver has horovod {version}: "
                "install the same version on every node of the cluster"
            )
            raise RuntimeError(message)
        if is_elastic:
            from horovod.spark._elastic_task import run_elastic_task  # noqa: PLC0415

            yield from run_elastic_task(plain)
            return
        from horovod.spark._task import run_task  # noqa: PLC0415

        yield from run_task(plain)

    return task


def to_batches(rank: int, result: bytes) -> Iterator[Any]:
    """A rank's result as record batches of SCHEMA; in a task, where pyarrow is there."""
    import pyarrow as pa  # noqa: PLC0415

    schema = pa.schema([("rank", pa.int32()), ("position", pa.int32()), ("part", pa.binary())])
    for position, start in enumerate(range(0, max(len(result), 1), PART_BYTES)):
        row = {"rank": [rank], "position": [position], "part": [result[start : start + PART_BYTES]]}
        yield pa.RecordBatch.from_pydict(row, schema=schema)


def join_parts(rows: Sequence[tuple[int, int, bytes]], size: int) -> list[bytes]:
    """The results by rank, from all rows in any order; RuntimeError if a rank is missing."""
    results: list[bytes] = []
    for rank in range(size):
        parts = sorted((position, part) for owner, position, part in rows if owner == rank)
        if not parts or [position for position, _ in parts] != list(range(len(parts))):
            message = f"Spark brought no whole result of rank {rank} of {size}"
            raise RuntimeError(message)
        results.append(b"".join(bytes(part) for _, part in parts))
    return results
