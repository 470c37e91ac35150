"""From one world to the next: shutdown, init, and the process sets that are wanted again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from horovod._core import _native
from horovod._core.basics import basics
from horovod._core.errors import REMOVED, HorovodInternalError
from horovod._core.process_sets import (
    ProcessSet,
    add_process_set,
    forget_registered,
    registered_objects,
)

from . import news

_logger = logging.getLogger("horovod")


class World:
    """The world that a training function lives in; calling it leads to the next one.

    Process sets that exist when the function begins are registered again in each world, in their order:
    newcomers register them too, on their way to the function. Sets that the function adds by itself are
    its own business.
    """

    def __init__(self, shutdown: Callable[[], None], init: Callable[..., None]) -> None:
        """Take the calls of a front end, which clear what it remembers."""
        self._shutdown = shutdown
        self._init = init
        self._static: list[ProcessSet] = []
        self._dynamic: list[ProcessSet] = []

    def begin(self) -> None:
        """Remember which process sets there are."""
        everything = registered_objects() if basics.is_initialized() else []
        static = {id(process_set) for process_set in basics.static_process_sets}
        self._static = [process_set for process_set in everything if id(process_set) in static]
        self._dynamic = [process_set for process_set in everything if id(process_set) not in static]

    def __call__(self) -> None:
        """Leave the old world and wait for the next; SystemExit(0) if this worker has no place there."""
        while True:
            self._shutdown()
            forget_registered()
            self._enter()
            try:
                _register_again(self._dynamic)
            except HorovodInternalError as error:
                # A peer was lost; the launcher will say who is in the next world, or end the job.
                if not news.is_active():
                    raise
                _logger.info("lost a peer during a reset, meeting again: %s", error)
            else:
                return

    def _enter(self) -> None:
        try:
            if self._static:
                self._init(process_sets=self._static)
            else:
                self._init()
        except HorovodInternalError as error:
            if error.status != REMOVED:
                raise
            _logger.info("%s", error)
            raise SystemExit(0) from error


def _register_again(process_sets: Sequence[ProcessSet]) -> None:
    size = basics.size()
    for process_set in process_sets:
        ranks = process_set.ranks or []
        if all(rank < size for rank in ranks) and len(ranks) < size:
            add_process_set(process_set)
        else:
            _logger.warning("process set %s has no place among %d ranks: not registered", ranks, size)


def leave() -> None:
    """Go as planned: this is no failure, and the others have the state."""
    news.report(news.REPORT_LEAVING)
    _native.shutdown()
    raise SystemExit(0)
