"""TensorFlow's own servers of the tf.data service, with addresses that other hosts can use."""

from __future__ import annotations

import logging
import threading
from typing import Any

import tensorflow as tf

_LOG = logging.getLogger(__name__)

_STOP_SECONDS = 10.0

_service = tf.data.experimental.service


def _stop(server: Any, kind: str) -> None:
    """Stop a server; TensorFlow waits for requests that nobody ends any more, and knows no deadline."""
    # The thread also keeps the server from being destroyed, which would wait in the same way.
    thread = threading.Thread(target=server._stop, daemon=True)  # noqa: SLF001 - the public way is its end
    thread.start()
    thread.join(_STOP_SECONDS)
    if thread.is_alive():
        _LOG.warning(
            "a tf.data %s does not stop within %.0f s; it ends with its process", kind, _STOP_SECONDS
        )


class Dispatcher:
    """A dispatcher on a free port, from its construction until stop()."""

    def __init__(self, host: str) -> None:
        """Start; `host` is the address of this host that others use."""
        self._server: Any = _service.DispatchServer(_service.DispatcherConfig(port=0))
        protocol, _, place = self._server.target.partition("://")
        self.address = f"{protocol}://{host}:{place.rpartition(':')[2]}"

    def stop(self) -> None:
        """End it; its workers and readers find nobody any more."""
        _stop(self._server, "dispatcher")


class Worker:
    """A worker of a dispatcher on a free port, from its construction until stop()."""

    def __init__(self, host: str, dispatcher_address: str) -> None:
        """Start; `host` is the address of this host that others use."""
        config = _service.WorkerConfig(
            dispatcher_address=dispatcher_address.rpartition("://")[2],
            worker_address=f"{host}:%port%",
            port=0,
        )
        self._server: Any = _service.WorkerServer(config)

    def stop(self) -> None:
        """End it."""
        _stop(self._server, "worker")
