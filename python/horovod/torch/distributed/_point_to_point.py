"""send and recv: a broadcast in a set of the two processes, named by direction, tag and number.

The set is opened when either side first needs it, by a thread of its own: in a ring of sends nobody
would come to the second meeting otherwise. Transfers wait for it in the order they were started.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch.distributed import DistBackendError, Work

from horovod._core import _native, codes
from horovod.torch._devices import device_of, on_own_device
from horovod.torch.distributed import _buffers
from horovod.torch.distributed._futures import complete_by_helper
from horovod.torch.distributed._group import PROGRESS_BACKGROUND, PROGRESS_DEFAULT
from horovod.torch.distributed._origin import Origin, origin_on
from horovod.torch.distributed._work import CompletedWork, PendingWork, late

if TYPE_CHECKING:
    from collections.abc import Callable

    from horovod.torch.distributed._group import Group

# Names repeat, so that the core's table of names stays small; so many transfers of one direction and
# tag can be under way.
_NAMES_PER_DIRECTION = 256
# How long "any source" waits for one sender before it looks at the next.
_SLICE_SECONDS = 0.005
# What fits in one message reaches the receiver without further help of the sender.
_EAGER_BYTES = 4096


class TransferWork(PendingWork):
    """A transfer that begins when the set of its two processes is open."""

    def __init__(
        self, tensor: torch.Tensor, seconds: float, source: int, finish: Callable[[int], None] | None
    ) -> None:
        origin = origin_on(device_of(tensor))
        super().__init__(0, [tensor], seconds, finish, complete_by_helper, origin)
        self.source = source
        self._begun = threading.Event()

    def begin(self, submit: Callable[[], int]) -> None:
        try:
            self._handle = submit()
        except Exception as error:  # noqa: BLE001 - told to whoever waits
            self.fail(error)
        self._begun.set()

    def fail(self, error: Exception) -> None:
        self._end(error)
        self._begun.set()

    def expire(self) -> None:
        if self._begun.is_set():
            super().expire()
        else:
            self._end(DistBackendError(late(self._seconds)))

    def deliver_to(self, tensor: torch.Tensor, plain: torch.Tensor) -> None:
        """Brings what arrives, or has arrived, to another tensor."""

        def finish(_: int) -> None:
            _buffers.give_back(tensor, plain.view(tensor.shape))

        with self._waiting:
            self._outputs = [tensor]
            self._finish = finish
            if self._origin is not None:
                self._origin.follow_current()  # the tensor is the caller's
            if self._done and self._error is None:
                self._finish_in_origin(0)

    @property
    def stream(self) -> int:
        """The stream that was current when the transfer was asked for; 0 for host memory."""
        return 0 if self._origin is None else self._origin.handle

    def settle_within(self, seconds: float) -> bool:
        if not self._begun.wait(seconds):
            return False
        return super().settle_within(seconds)

    def source_rank(self) -> int:
        return self.source

    _source_rank = source_rank


class _Pair:
    """The set of this process and a peer."""

    def __init__(self, key: str, ranks: list[int], seconds: float) -> None:
        self._waiting: deque[tuple[TransferWork, Callable[[int], int]]] = deque()
        self._lock = threading.Lock()
        self._process_set: int | None = None
        self._error: Exception | None = None
        arguments = (key, ranks, seconds)
        name = f"horovod-{key}"
        threading.Thread(target=self._meet, args=arguments, name=name, daemon=True).start()

    def start(self, work: TransferWork, submit: Callable[[int], int]) -> None:
        """Submits now, or when the peer has come."""
        with self._lock:
            if self._error is not None:
                work.fail(self._error)
                return
            if self._process_set is None:
                self._waiting.append((work, submit))
                return
        work.begin(partial(submit, self._process_set))

    def _meet(self, key: str, ranks: list[int], seconds: float) -> None:
        try:
            process_set = _native.process_set_meet(key, ranks, seconds)
        except Exception as error:  # noqa: BLE001 - told to every transfer
            with self._lock:
                self._error = error
            for work, _ in self._waiting:
                work.fail(error)
            self._waiting.clear()
            return
        with self._lock:
            while self._waiting:
                work, submit = self._waiting.popleft()
                work.begin(partial(submit, process_set))
            self._process_set = process_set

    def leave(self) -> None:
        with self._lock:
            if self._process_set is not None:
                _native.process_set_leave(self._process_set)
                self._process_set = None


class AnySourceWork(Work):
    """A message from whoever is the first to send one."""

    def __init__(self, tensor: torch.Tensor, tag: int, mail: Mail) -> None:
        super().__init__()
        self._tensor = tensor
        self._tag = tag
        self._mail = mail
        self._taken: TransferWork | None = None

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        seconds = timeout.total_seconds() if timeout else self._mail.seconds
        deadline = time.monotonic() + seconds
        while self._taken is None:
            self._taken = self._mail.take_first(self._tensor, self._tag, _SLICE_SECONDS)
            if self._taken is None and time.monotonic() > deadline:
                raise DistBackendError(late(seconds))
        return self._taken.wait()  # the stream that is current now is held back

    def is_completed(self) -> bool:
        if self._taken is None:
            self._taken = self._mail.take_first(self._tensor, self._tag, 0.0)
        return self._taken is not None

    is_success = is_completed

    def result(self) -> list[torch.Tensor]:
        return [self._tensor]

    def source_rank(self) -> int:
        return -1 if self._taken is None else self._taken.source

    _source_rank = source_rank


class Mail:
    """All transfers of one group."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._pairs: dict[int, _Pair] = {}
        self._counts: defaultdict[tuple[int, int, int], int] = defaultdict(int)
        self._under_way: dict[str, TransferWork] = {}
        # Receives started for "any source" whose sender has not come yet: the next message of that
        # sender and tag arrives there, whoever asks for it.
        self._open: dict[tuple[int, int], tuple[TransferWork, torch.Tensor]] = {}
        self._to_self: defaultdict[int, deque[tuple[torch.Tensor, Origin | None]]] = defaultdict(deque)

    def send(self, tensor: torch.Tensor, target: int, tag: int) -> Work:
        plain = _buffers.plain_copy(tensor)
        if target == self._group.rank:
            origin = origin_on(device_of(plain))
            self._to_self[tag].append((plain.clone(), origin))
            if origin is not None:
                origin.mark()
            return CompletedWork([tensor])
        work = TransferWork(tensor, self._group.seconds, self._group.rank, None)
        self._start(work, plain, self._group.rank, target, tag)
        return work

    def receive(self, tensor: torch.Tensor, source: int, tag: int) -> Work:
        if source == self._group.rank:
            return self._receive_from_self(tensor, tag)
        if (source, tag) in self._open:
            work, plain = self._open.pop((source, tag))
            _check_same_size(tensor, plain)
            work.deliver_to(tensor, plain)
            return work
        plain = _buffers.plain_space(tensor)
        finish = None
        if plain is not tensor:

            def finish(_: int) -> None:
                _buffers.give_back(tensor, plain)

        work = TransferWork(tensor, self._group.seconds, source, finish)
        self._start(work, plain, source, self._group.rank, tag)
        return work

    def receive_any(self, tensor: torch.Tensor, tag: int) -> Work:
        """Starts a receive from every other rank; those that stay open serve later calls."""
        for source in range(self._group.size):
            if source == self._group.rank:
                continue
            if (source, tag) not in self._open:
                plain = torch.empty(tensor.shape, dtype=tensor.dtype, device=on_own_device(tensor))
                work = TransferWork(plain, self._group.seconds, source, None)
                self._start(work, plain, source, self._group.rank, tag)
                self._open[source, tag] = (work, plain)
            _check_same_size(tensor, self._open[source, tag][1])
        return AnySourceWork(tensor, tag, self)

    def take_first(self, tensor: torch.Tensor, tag: int, seconds: float) -> TransferWork | None:
        """The transfer whose message is there, now in the tensor; None: nobody's within the time."""
        for (source, its_tag), (work, plain) in list(self._open.items()):
            if its_tag == tag and work.settle_within(seconds):
                del self._open[source, its_tag]
                work.deliver_to(tensor, plain)
                work.wait()  # raises what went wrong
                return work
        return None

    @property
    def seconds(self) -> float:
        """The time limit of the group."""
        return self._group.seconds

    def close(self) -> None:
        """Leaves all pairs; the peers do the same."""
        for pair in self._pairs.values():
            pair.leave()
        self._pairs.clear()

    def _receive_from_self(self, tensor: torch.Tensor, tag: int) -> Work:
        if not self._to_self[tag]:
            message = f"recv from rank {self._group.rank} itself, tag {tag}: nothing was sent before"
            raise ValueError(message)
        sent, origin = self._to_self[tag].popleft()
        if origin is not None:
            origin.hold_back_current()
        tensor.detach().copy_(sent.view(tensor.shape))
        if origin is not None:
            sent.record_stream(torch.cuda.current_stream(sent.device))  # another than it was allocated in
        return CompletedWork([tensor])

    def _start(self, work: TransferWork, plain: torch.Tensor, source: int, target: int, tag: int) -> None:
        name = self._next_name(source, target, tag)
        previous = self._under_way.get(name)
        if previous is not None:
            previous.wait()
        self._under_way[name] = work
        code, count = _buffers.moved(plain)
        is_small = plain.numel() * plain.element_size() <= _EAGER_BYTES
        # A sender may do other things than wait for its receiver.
        helped = source == self._group.rank and not is_small
        where, device, stream = _buffers.address(plain), device_of(plain), work.stream
        root = self._group.members.ranks[source]

        def submit(process_set: int) -> int:
            return _native.submit(
                kind=codes.BROADCAST,
                dtype=code,
                process_set=process_set,
                root_rank=root,
                progress=PROGRESS_BACKGROUND if helped else PROGRESS_DEFAULT,
                shape=(count,),
                input=where,
                output=where,
                name=name,
                owner=plain,
                device=device,
                stream=stream,
            )

        self._pair(target if source == self._group.rank else source).start(work, submit)

    def _next_name(self, source: int, target: int, tag: int) -> str:
        number = self._counts[source, target, tag]
        self._counts[source, target, tag] = (number + 1) % _NAMES_PER_DIRECTION
        return f"{source}>{target}.{tag}.{number}"

    def _pair(self, peer: int) -> _Pair:
        pair = self._pairs.get(peer)
        if pair is None:
            low, high = sorted((self._group.rank, peer))
            ranks = sorted((self._group.members.ranks[low], self._group.members.ranks[high]))
            key = f"{self._group.members.key}/{low}-{high}"
            pair = self._pairs[peer] = _Pair(key, ranks, self._group.seconds)
        return pair


def _check_same_size(tensor: torch.Tensor, plain: torch.Tensor) -> None:
    is_same = tensor.dtype == plain.dtype and tensor.numel() == plain.numel()
    if not is_same or on_own_device(tensor) not in {plain.device, plain.device.type}:
        message = (
            f"recv: a receive from any source has prepared for {plain.numel()} elements of "
            f"{plain.dtype} on {plain.device}, got a tensor of {tensor.numel()} of {tensor.dtype} "
            f"on {tensor.device}"
        )
        raise ValueError(message)
