"""Every operation, and the calls about the job; the name is that of the original."""

from __future__ import annotations

from typing import Any

from horovod._core import _native
from horovod._core.average import get_average_backwards_compatibility_fun
from horovod._core.basics import HorovodBasics, basics
from horovod._core.errors import HorovodInternalError
from horovod._core.exchange import register_finder
from horovod._core.process_sets import ProcessSet, global_process_set, registered_id

from ._allreduce import (
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    sparse_allreduce_async,
)
from ._autograd import (
    HorovodAllgather,
    HorovodAllreduce,
    HorovodAlltoall,
    HorovodBroadcast,
    HorovodReducescatter,
)
from ._autograd_groups import (
    HorovodGroupedAllgather,
    HorovodGroupedAllreduce,
    HorovodGroupedReducescatter,
)
from ._gradient_schedule import gradient_schedule
from ._handles import handles, poll, run_shutdown_hooks, synchronize
from ._launcher_store import find_store
from ._movement import (
    allgather,
    allgather_async,
    alltoall,
    alltoall_async,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather,
    grouped_allgather_async,
)
from ._reducescatter import (
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
)

_basics: HorovodBasics = basics
_handle_map = handles.pending

Average = basics.Average
Sum = basics.Sum
Adasum = basics.Adasum
Min = basics.Min
Max = basics.Max
Product = basics.Product

is_initialized = basics.is_initialized
start_timeline = basics.start_timeline
stop_timeline = basics.stop_timeline
size = basics.size
local_size = basics.local_size
cross_size = basics.cross_size
rank = basics.rank
local_rank = basics.local_rank
cross_rank = basics.cross_rank
is_homogeneous = basics.is_homogeneous
mpi_threads_supported = basics.mpi_threads_supported
mpi_enabled = basics.mpi_enabled
mpi_built = basics.mpi_built
gloo_enabled = basics.gloo_enabled
gloo_built = basics.gloo_built
nccl_built = basics.nccl_built
ddl_built = basics.ddl_built
ccl_built = basics.ccl_built
cuda_built = basics.cuda_built
rocm_built = basics.rocm_built
sycl_built = basics.sycl_built

handle_average_backwards_compatibility = get_average_backwards_compatibility_fun(basics)


register_finder(find_store)


def init(*args: Any, **kwargs: Any) -> None:
    """Start the core: `init(comm=None, process_sets=None)`. Call it before anything else.

    Rank and size come from the launcher (horovodrun, torchrun, mpirun, srun); without one the job
    has one process. Blocks until all ranks have come.

    Arguments:
        *args: as follows, by position.
        **kwargs: `comm`, which processes form the job: None for all, a communicator of mpi4py, or
            ranks of MPI_COMM_WORLD; `process_sets`: ProcessSet objects to register, the same on
            every rank, or "dynamic", which allows add_process_set later.

    Raises:
        ValueError: ranks that were given different process sets, or sets that are no sets of ranks.
        HorovodInternalError: other ranks did not arrive in time.

    """
    if not basics.is_initialized():
        handles.pending.clear()
    basics.init(*args, **kwargs)
    if basics.is_initialized():
        gradient_schedule()  # chosen and logged at start


def shutdown() -> None:
    """Stop the core on every rank; operations under way fail. `init` may be called again."""
    basics.shutdown()
    handles.reset()
    run_shutdown_hooks()


def join(device: int = -1) -> int:
    """Say that this rank has no more data, and wait until all ranks have said so.

    Meanwhile it takes part in the allreduces of the others with zeros. Returns the rank that joined
    last. The device is of no consequence: zeros are given from the one that was used last, or, before
    the first operation on one, from that with the number of the local rank.

    Arguments:
        device: accepted, without effect.

    Raises:
        HorovodInternalError: a lost rank, or no `init`.

    """
    del device
    handles.take_number()
    return _native.join(None)


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until all ranks of the set are here.

    Arguments:
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a process set that this rank is not in.
        HorovodInternalError: a lost rank, or no `init`.

    """
    handles.take_number()
    _native.barrier(registered_id(process_set), None)


__all__ = [
    "Adasum",
    "Average",
    "HorovodAllgather",
    "HorovodAllreduce",
    "HorovodAlltoall",
    "HorovodBroadcast",
    "HorovodGroupedAllgather",
    "HorovodGroupedAllreduce",
    "HorovodGroupedReducescatter",
    "HorovodInternalError",
    "HorovodReducescatter",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "Sum",
    "allgather",
    "allgather_async",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "handle_average_backwards_compatibility",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "poll",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "rocm_built",
    "shutdown",
    "size",
    "sparse_allreduce_async",
    "start_timeline",
    "stop_timeline",
    "sycl_built",
    "synchronize",
]
