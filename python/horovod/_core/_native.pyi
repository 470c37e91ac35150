"""What the abi3 module offers: the C interface of the core, one call each, without policy.

Built from src/bindings/python. Addresses are integers, kinds, dtypes and operations the numbers of hvd.h.
Calls that may block release the GIL and look for signals every 100 ms. A failing call raises
ValueError for INVALID_ARGUMENT, else the class given to set_error_class, with the attribute `status`.
"""

from collections.abc import Sequence
from typing import final

from .exchange import Exchange

Capsule = object

def set_error_class(error: type[Exception], /) -> None:
    """The exception for every status but INVALID_ARGUMENT; RuntimeError until it is called."""

def nccl_version() -> int:
    """The version code of the NCCL that would be used; 0: none."""

def device_count() -> int: ...
def version() -> str: ...
def library_path() -> str:
    """The libhorovod.so that this process uses."""

def capabilities() -> dict[str, object]:
    """Fields of hvd_capabilities."""

def status_names() -> dict[int, str]: ...

# ---- life cycle

def init(
    topology: tuple[int, int, int, int, int, int] | None,
    job_id: str | None,
    process_sets: Sequence[Sequence[int]],
    dynamic_process_sets: bool,
    progress: int,
    exchange: Exchange | None = None,
    /,
) -> None:
    """Topology: rank, size, local rank and size, cross rank and size; None: from the environment.

    Exchange: a store that the ranks share already, used if they are on several hosts.
    """

def shutdown() -> None: ...
def init_mpi(
    comm_address: int | None, ranks: Sequence[int], process_sets: Sequence[Sequence[int]], /
) -> None:
    """Take the ranks of the communicator at an address, or these ranks of MPI_COMM_WORLD."""

def is_initialized() -> bool: ...
def rank() -> int: ...
def size() -> int: ...
def local_rank() -> int: ...
def local_size() -> int: ...
def cross_rank() -> int: ...
def cross_size() -> int: ...
def is_homogeneous() -> bool: ...
def mpi_threads() -> int:
    """1: MPI is used, from any number of threads; 0: from one at a time; -1: it is not used."""

# ---- elastic jobs

def elastic_is_active() -> bool:
    """Whether an elastic launcher has started this process."""

def elastic_epoch() -> int:
    """The world that this process is in or was in last; 0: none yet."""

def elastic_look() -> tuple[int, int, bool]:
    """Time of the newest change in ns (0: none), its flags (1 removed, 2 added), whether to leave."""

def elastic_report(kind: int, number: int, /) -> None:
    """Tell the launcher: 1 a commit's number, 2 a planned leave, 3 that training has ended."""

# ---- submissions

# Keywords left out have the values of hvd_request_init: set 0, sum, no wire type, factors 1.

def submit(
    *,
    kind: int,
    dtype: int,
    reduce_op: int = ...,
    process_set: int = ...,
    root_rank: int = ...,
    wire_dtype: int = ...,
    progress: int = ...,
    shape: Sequence[int],
    input: int,
    output: int = ...,
    prescale: float = ...,
    postscale: float = ...,
    splits: Sequence[int] | None = ...,
    name: str | None = ...,
    owner: object,
    notify: bool = ...,
    device: int = ...,
    stream: int = ...,
) -> int:
    """Handle of an asynchronous submission.

    Output 0: the core allocates it, see take_output. The owner is kept alive until the operation is
    complete, whatever happens to the handle. Notify: completion is reported by next_completed.
    """

def run(
    *,
    kind: int,
    dtype: int,
    reduce_op: int = ...,
    process_set: int = ...,
    root_rank: int = ...,
    wire_dtype: int = ...,
    shape: Sequence[int],
    input: int,
    output: int,
    prescale: float = ...,
    postscale: float = ...,
    name: str | None = ...,
    owner: object,
) -> None:
    """Submits and waits in one call: the quickest form. The output must be given."""

def submit_group(
    *,
    kind: int,
    reduce_op: int = ...,
    process_set: int = ...,
    wire_dtype: int = ...,
    progress: int = ...,
    prescale: float = ...,
    postscale: float = ...,
    tensors: Sequence[tuple[int, Sequence[int], int, int, str | None]],
    owner: object,
    notify: bool = ...,
    device: int = ...,
    stream: int = ...,
) -> int:
    """One operation of many tensors: (dtype, shape, input, output, name) each."""

@final
class Prepared:
    """An operation on one tensor that repeats: checked and looked up once."""

    def __new__(
        cls,
        *,
        kind: int,
        dtype: int,
        reduce_op: int = ...,
        process_set: int = ...,
        root_rank: int = ...,
        wire_dtype: int = ...,
        progress: int = ...,
        shape: Sequence[int],
        prescale: float = ...,
        postscale: float = ...,
        name: str | None = ...,
        device: int = ...,
    ) -> Prepared: ...
    def submit(self, input: int, output: int, owner: object, stream: int = 0, /) -> int: ...
    def run(self, input: int, output: int, owner: object, /) -> None: ...

def poll(handle: int, /) -> bool:
    """The state found, then one step. Completion with an error counts as done."""

def wait(handle: int, timeout_seconds: float | None, /) -> bool:
    """False: the time passed and the operation goes on. Raises if the operation failed."""

def wait_many(handles: Sequence[int], timeout_seconds: float | None, /) -> bool: ...
def order(handle: int, stream: int, /) -> None:
    """After completion: the stream waits for the results, this thread does not."""

def release(handle: int, /) -> None: ...
def next_completed(timeout_seconds: float | None, /) -> int | None:
    """The next handle submitted with notify that is complete; None: the time passed or shutdown."""

def output_shape(handle: int, index: int, /) -> tuple[int, ...]: ...
def received_splits(handle: int, /) -> tuple[int, ...]: ...
def take_output(handle: int, index: int, /) -> Capsule:
    """A DLPack capsule ("dltensor") that owns the output the core allocated."""

def barrier(process_set: int, timeout_seconds: float | None, /) -> None: ...
def join(timeout_seconds: float | None, /) -> int:
    """The rank that joined last."""

# ---- buffers in shared memory

def buffer_alloc(shape: Sequence[int], dtype: int, /) -> Capsule:
    """A DLPack capsule over zeroed shared memory, freed with the tensor made from it."""

def buffer_contains(address: int, byte_count: int, /) -> bool: ...

# ---- process sets: ids and the negative codes of hvd.h

def process_set_add(ranks: Sequence[int], /) -> int:
    """Returns the id or a negative code; raises ValueError for ranks that make no set, here or together."""

def process_set_remove(process_set: int, /) -> int: ...
def process_set_rank(process_set: int, /) -> int: ...
def process_set_size(process_set: int, /) -> int: ...
def process_set_included(process_set: int, /) -> int: ...
def process_set_ids() -> list[int]: ...
def process_set_ranks(process_set: int, /) -> list[int]: ...
def process_set_meet(key: str, ranks: Sequence[int], timeout_seconds: float, /) -> int:
    """Opens a set that only its members know and call for; returns its id or raises.

    All members give the same key and ranks. Such a set is no part of process_set_ids.
    """

def process_set_leave(process_set: int, /) -> None:
    """Closes a set opened by process_set_meet."""

# ---- observation

def timeline_start(path: str, mark_cycles: bool, /) -> None: ...
def timeline_stop() -> None: ...
def stats() -> dict[str, int]: ...
def recent_operations() -> str: ...
def set_stall_signal(signal_number: int, /) -> None:
    """The signal that peers send this process when it is late for a stalled operation; 0: none."""

# ---- sealed bytes: ChaCha20-Poly1305 with the number as nonce

def seal(key: bytes, number: int, plain: bytes, /) -> bytes:
    """The bytes encrypted, and a tag of 16 bytes. A number, below 2^64, serves a key of 32 bytes once."""

def unseal(key: bytes, number: int, sealed: bytes, /) -> bytes | None:
    """What was sealed with this key and number; None: these bytes were not."""
