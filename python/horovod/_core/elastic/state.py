"""State that survives resets: the base class of all, and the one for plain Python objects."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from horovod._core.errors import HostsUpdatedInterrupt
from horovod._core.integers import allgather_integers
from horovod._core.process_sets import global_process_set

from . import news
from .claims import Agreement, Claim, exchange
from .shares import ElasticIndices

_REMOVED = 1  # of HostUpdateResult


class State:
    """What a worker can go back to, and what newcomers receive.

    A subclass says how: save, restore, sync. With the `broadcast_object` of one of our front ends the
    state of the newest commit is shared; with a function of the program's own, that of rank 0.
    """

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int]) -> None:
        """Keep how objects are shared, and how this process learns its rank."""
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._host_messages: queue.Queue[tuple[float, int]] = news.HostMessages()
        self._last_updated_timestamp: float = 0
        self._reset_callbacks: list[Callable[[], None]] = []
        self._claim = Claim()
        self._is_just_saved = False

    # ---- for programs

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """Call these after each reset, in order: sizes and learning rates may follow the world."""
        self._reset_callbacks.extend(callbacks)

    def commit(self) -> None:
        """Save, and look whether hosts have changed. To be called by all ranks at the same step."""
        self._save_commit()
        self._is_just_saved = True
        try:
            self.check_host_updates()
        finally:
            self._is_just_saved = False

    def check_host_updates(self) -> None:
        """Raise HostsUpdatedInterrupt on all ranks at once if a rank must leave, or hosts have changed.

        A collective. Rank 0's knowledge of the hosts counts, and the wish to leave of any rank.
        """
        is_asked_to_leave = news.look().is_asked_to_leave
        previous, changes = self._last_updated_timestamp, 0
        newest = previous
        while not self._host_messages.empty():
            timestamp, result = self._host_messages.get()
            if timestamp > newest:
                newest = timestamp
                changes |= result
        previous, newest, changes, somebody_leaves = self._share_news(
            previous, newest, changes, is_asked_to_leave
        )
        self._last_updated_timestamp = newest
        if newest > previous or somebody_leaves:
            self._before_interrupt()
            is_only_removal = changes == _REMOVED or (somebody_leaves and changes == 0)
            raise HostsUpdatedInterrupt(is_only_removal)

    # ---- for subclasses

    def save(self) -> None:
        """Copy the state in memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Go back to the last copy."""
        raise NotImplementedError

    def sync(self) -> None:
        """Give every rank the same state."""
        raise NotImplementedError

    def reset(self) -> None:
        """Adapt to the new world; called before the callbacks."""

    # ---- for the loop around the training function

    def count_commits(self) -> int:
        """How many commits lie behind the state that this worker has."""
        return self._claim.commit

    def on_reset(self) -> None:
        """Forget old messages, adapt, and tell the program."""
        self._host_messages = news.HostMessages()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Take note; any thread may call it."""
        self._host_messages.put((timestamp, update_res))

    def sync_if_needed(self) -> None:
        """Sync unless every rank has the same commit: after ranks were taken away, and none came."""
        self._claim = replace(self._claim, wants_sync=False)
        try:
            self.sync()
        finally:
            self._claim = replace(self._claim, wants_sync=True)

    # ---- parts

    def _has_own_collectives(self) -> bool:
        return getattr(self._bcast_object, "__module__", None) in _FRONT_ENDS

    def _share_news(
        self, previous: float, newest: float, changes: int, leaves: bool
    ) -> tuple[float, float, int, bool]:
        if not self._has_own_collectives():
            return (*self._bcast_object((previous, newest, changes)), leaves)
        gathered = allgather_integers(
            [int(previous), int(newest), changes, int(leaves)], global_process_set, "elastic.news"
        )
        return gathered[0][0], gathered[0][1], gathered[0][2], any(numbers[3] for numbers in gathered)

    def _before_interrupt(self) -> None:
        """Called where all ranks stand at the same step: nothing of it shall be lost."""

    def _save_commit(self) -> None:
        before = self._claim
        self.save()
        if self._claim is before:
            self._count_commit()

    def _count_commit(self) -> None:
        self._claim = replace(self._claim, commit=self._claim.commit + 1)
        news.report(news.REPORT_COMMITTED, self._claim.commit)

    @contextmanager
    def _agreement(self) -> Iterator[Agreement]:
        """Agree on the root of a sync; a sync that was not completed gives no claim to a state."""
        if not self._has_own_collectives():
            yield Agreement(root=0, generation=0, commit=0, is_needed=True)
            return
        agreed = exchange(self._claim)
        yield agreed
        if agreed.is_needed:
            self._claim = Claim(has_state=True, generation=agreed.generation, commit=agreed.commit)


_FRONT_ENDS = {
    "horovod._core.objects",
    "horovod.jax.functions",
    "horovod.mxnet.functions",
    "horovod.tensorflow.functions",
    "horovod.torch.functions",
}
"""Where a broadcast_object comes from that takes a root, and leaves the engine to us."""


class _Progress(dict[str, int]):
    """How far an epoch has come, in place of the ElasticIndices that count it."""


def _saved(value: Any) -> Any:
    return _Progress(value.state_dict()) if isinstance(value, ElasticIndices) else value


class ObjectState(State):
    """Keeps Python objects: each argument becomes an attribute.

    Attributes are saved by reference: assign new values instead of changing lists and dicts in place. Of
    ElasticIndices is saved how far they have come.
    """

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int], **kwargs: Any) -> None:
        """Track the keyword arguments."""
        super().__init__(bcast_object, get_rank)
        self._saved_state: dict[str, Any] = {}
        for name, value in kwargs.items():
            setattr(self, name, value)
            self._saved_state[name] = _saved(value)

    def save(self) -> None:
        """Remember the values of the attributes."""
        self._saved_state = {name: _saved(getattr(self, name)) for name in self._saved_state}
        self._count_commit()

    def restore(self) -> None:
        """Set the attributes to the values that were saved last."""
        self._set_attrs()

    def sync(self) -> None:
        """Set the attributes of every rank to the values that the newest commit has."""
        with self._agreement() as agreed:
            if agreed.is_needed:
                self._take_objects(self._receive_objects(agreed.root))

    def reset(self) -> None:
        """Split what is left of an epoch among the ranks there are now."""
        for name, value in self._saved_state.items():
            if isinstance(value, _Progress):
                getattr(self, name).reset()

    def _receive_objects(self, root: int) -> dict[str, Any]:
        """Return what the root has saved; nothing is changed yet, since a collective may fail."""
        received: dict[str, Any] = self._saved_state
        if not received:
            return received
        if self._has_own_collectives():
            received = self._bcast_object(received, root_rank=root, name="elastic.objects")
        else:
            received = self._bcast_object(received)
        return received

    def _take_objects(self, received: dict[str, Any]) -> None:
        self._saved_state = received
        self._set_attrs()

    def _before_interrupt(self) -> None:
        if self._has_own_collectives() and not self._is_just_saved:
            self._save_commit()

    def _set_attrs(self) -> None:
        for name, value in self._saved_state.items():
            if isinstance(value, _Progress):
                getattr(self, name).load_state_dict(value)
            else:
                setattr(self, name, value)
