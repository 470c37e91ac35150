"""The end that asks."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from horovod.runner.common.util.network import NoValidAddressesFound

from ._channel import StrangerError, greet
from ._messages import receive_message, send_message

_LOG = logging.getLogger(__name__)

_CONNECT_SECONDS = 5.0
_PROBE_SECONDS = 20.0
_PAUSE_SECONDS = 0.2

Addresses = Mapping[str, Sequence[tuple[str, int]]]


class Client:
    """Asks a service that is somewhere behind one of several addresses; any thread may use it."""

    def __init__(self, name: str, addresses: Addresses, key: bytes) -> None:
        """Find an address that the service answers at; NoValidAddressesFound if there is none."""
        self._name = name
        self._key = key
        # A loopback address is that of whatever host looks at it; others come first.
        pairs = [(host, port) for listed in addresses.values() for host, port in listed]
        self._candidates = sorted(pairs, key=lambda pair: (pair[0].startswith("127."), pair))
        self._address: tuple[str, int] | None = None
        self._own_address = ""
        self._find()

    @property
    def own_address(self) -> str:
        """The address of this host by which it reaches the service, and others may reach it."""
        return self._own_address

    def ask(self, question: Any, wait_seconds: float = 0.0) -> Any:
        """Return the answer, for which the service may take so long."""
        if self._address is None:
            message = f"{self._name}: no address of it is known"
            raise NoValidAddressesFound(message)
        try:
            return self._ask_at(self._address, question, wait_seconds)
        except (OSError, StrangerError) as error:
            message = (
                f"{self._name} does not answer any more at {self._address[0]}:{self._address[1]}: {error}"
            )
            raise ConnectionError(message) from error

    def _ask_at(self, address: tuple[str, int], question: Any, wait_seconds: float) -> Any:
        with socket.create_connection(address, _CONNECT_SECONDS) as connection:
            channel = greet(connection, self._key)
            send_message(channel, question)
            connection.settimeout(_CONNECT_SECONDS + wait_seconds)
            answer = receive_message(channel)
            self._own_address = connection.getsockname()[0]
            return answer

    def _find(self) -> None:
        end = time.monotonic() + _PROBE_SECONDS
        while True:
            problems = []
            for address in self._candidates:
                try:
                    self._ask_at(address, {"call": "probe"}, 0.0)
                except (OSError, StrangerError) as error:
                    problems.append(f"{address[0]}:{address[1]} ({error})")
                else:
                    _LOG.debug("%s answers at %s:%d", self._name, *address)
                    self._address = address
                    return
            if time.monotonic() >= end:
                message = f"{self._name} does not answer at any of its addresses: {', '.join(problems)}"
                raise NoValidAddressesFound(message)
            time.sleep(_PAUSE_SECONDS)
