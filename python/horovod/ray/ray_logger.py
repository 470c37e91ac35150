"""Values that workers send to the driver while they run, for the callbacks of elastic jobs."""

from __future__ import annotations

import logging
from typing import Any

_logger = logging.getLogger("horovod.ray")


class _Channel:
    def __init__(self) -> None:
        self.queue: Any = None
        self.has_warned = False


_channel = _Channel()


def configure(queue: Any) -> None:
    """Send to this queue (a ray.util.queue.Queue) from now on."""
    _channel.queue = queue


def log(info_dict: dict[str, Any]) -> None:
    """Send a dictionary to the callbacks in the driver; without a queue it is dropped, with one warning."""
    if _channel.queue is not None:
        _channel.queue.put(info_dict)
        return
    if not _channel.has_warned:
        _logger.warning("ray_logger.log: there is no queue to the driver, so nothing is sent")
        _channel.has_warned = True
