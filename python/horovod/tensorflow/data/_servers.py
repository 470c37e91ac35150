"""TensorFlow's own servers of the tf.data service, with addresses that other hosts can use."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_service = tf.data.experimental.service


class Dispatcher:
    """A dispatcher on a free port, from its construction until stop()."""

    def __init__(self, host: str) -> None:
        """Start; `host` is the address of this host that others use."""
        self._server: Any = _service.DispatchServer(_service.DispatcherConfig(port=0))
        protocol, _, place = self._server.target.partition("://")
        self.address = f"{protocol}://{host}:{place.rpartition(':')[2]}"

    def stop(self) -> None:
        """End it; its workers and readers find nobody any more."""
        self._server._stop()  # noqa: SLF001 - TensorFlow's own way waits for the end of the object


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
        self._server._stop()  # noqa: SLF001 - as above
