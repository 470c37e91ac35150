"""Which data set a DataFrame has been written to, so that `fit` on it again need not write it again."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Entry:
    """One data set in a store. `owner` keeps the DataFrame alive, whose identity is in the key."""

    key: Hashable
    index: int
    owner: Any
    users: int = 0
    properties: Any = None
    writing: threading.Lock = field(default_factory=threading.Lock)


class TrainingDataCache:
    """Data sets by key; those that nobody uses make room for new ones. Any thread."""

    def __init__(self) -> None:
        """Begin empty."""
        self.lock = threading.RLock()
        self._entries: dict[int, Entry] = {}

    def take(self, key: Hashable, owner: Any, is_there: Callable[[int], bool]) -> Entry:
        """Return the entry of a key, used once more; without `properties` it has to be written."""
        with self.lock:
            for entry in self._entries.values():
                if entry.key == key and entry.owner is owner and is_there(entry.index):
                    entry.users += 1
                    return entry
            entry = Entry(key, self._free_index(), owner, users=1)
            self._entries[entry.index] = entry
            return entry

    def _free_index(self) -> int:
        used = {index for index, entry in self._entries.items() if entry.users > 0}
        return next(index for index in itertools.count() if index not in used)

    def give_back(self, entry: Entry) -> None:
        """Use an entry once less; one that was never written is forgotten."""
        with self.lock:
            entry.users -= 1
            if entry.properties is None and self._entries.get(entry.index) is entry:
                del self._entries[entry.index]

    def properties(self, index: int) -> Any:
        """Return what is known of a data set."""
        with self.lock:
            return self._entries[index].properties

    def clear(self) -> None:
        """Forget all data sets that nobody uses."""
        with self.lock:
            self._entries = {index: entry for index, entry in self._entries.items() if entry.users > 0}
