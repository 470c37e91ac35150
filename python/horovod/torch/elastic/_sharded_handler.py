"""Keeps a ShardedOptimizer through resets."""

from __future__ import annotations

from typing import Any

from horovod.torch.sharded_optimizer import ShardedOptimizer

from ._handler import StateHandler
from ._sharded_commits import ShardedCommits


class ShardedOptimizerStateHandler(StateHandler):
    """Keeps a ShardedOptimizer: each rank its shards, and those of one other rank."""

    commit: tuple[int, int] | None = None
    """The name of the commit that is saved next, or taken by the next sync()."""

    def __init__(self, value: ShardedOptimizer) -> None:
        """Keep nothing yet: the first copy is made by all ranks, in the first sync."""
        super().__init__(value)
        self._commits = ShardedCommits()

    def save(self) -> None:
        """Keep this rank's shards and those of a partner; a collective."""
        self._commits.save(self.value, self.commit)

    def restore(self) -> None:
        """Bring this rank's shards back; a world that has changed is taken care of by sync()."""
        self._commits.restore(self.value)

    def reset(self) -> None:
        """Cut the parameters for the new world; the state follows with sync()."""
        self.value.reshard()

    def sync(self) -> None:
        """Collect the state of the commit from those who have it, and cut it for this world."""
        self._commits.collect(self.value, self.commit, self.root_rank)

    def set_value(self, value: Any) -> None:
        """Handle another optimizer, whose state is kept from the next commit on."""
        self.value = value
