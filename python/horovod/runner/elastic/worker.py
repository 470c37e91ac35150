"""How a worker hears that the hosts have changed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from enum import IntFlag
from typing import Any, Protocol

from horovod._core.elastic import news
from horovod.runner.common.service._client import Addresses, Client
from horovod.runner.common.service._server import Server
from horovod.runner.common.util import secret
from horovod.runner.http.http_client import put_value

PUT_WORKER_ADDRESSES = "worker_addresses"


class HostUpdateResult(IntFlag):
    """What has happened to the hosts."""

    no_update = 0
    removed = 1
    added = 2
    mixed = 3


class Listener(Protocol):
    """Who wants to hear of it: an elastic state."""

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Take note."""


class WorkerNotificationManager:
    """Passes news on to the states of this process.

    Under `horovodrun` a state asks the core by itself. A driver in Python sends news to a service, whose
    address and key it finds in its store.
    """

    def __init__(self) -> None:
        """Do nothing until init."""
        self._service: WorkerNotificationService | None = None
        self._listeners: list[Listener] = []

    def init(
        self,
        rendezvous_addr: str | None = None,
        rendezvous_port: int | None = None,
        nic: str | None = None,
        hostname: str | None = None,
        local_rank: int | None = None,
    ) -> None:
        """Start the service once, if there is a driver to tell of it.

        What is not given is taken from the environment.
        """
        is_asked = rendezvous_addr is not None
        if self._service is not None or (not is_asked and not _has_python_driver(os.environ)):
            return
        address = rendezvous_addr or os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"]
        port = int(rendezvous_port or os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
        host = hostname or os.environ["HOROVOD_HOSTNAME"]
        place = local_rank if local_rank is not None else int(os.environ["HOROVOD_LOCAL_RANK"])
        key = secret.make_secret_key()
        self._service = WorkerNotificationService(key, nic or os.environ.get("HOROVOD_GLOO_IFACE"), self)
        value = describe_service(self._service.addresses(), key)
        put_value(address, port, PUT_WORKER_ADDRESSES, f"{host}:{place}", value)

    def register_listener(self, listener: Listener) -> None:
        """Pass news on to this one too."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Listener) -> None:
        """Pass nothing on to it any more."""
        self._listeners = [one for one in self._listeners if one is not listener]

    def handle_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Tell all listeners; called by the service."""
        for listener in list(self._listeners):
            listener.on_hosts_updated(timestamp, update_res)


def _has_python_driver(environment: Mapping[str, str]) -> bool:
    return (
        not news.is_active()
        and environment.get("HOROVOD_ELASTIC") == "1"
        and "HOROVOD_GLOO_RENDEZVOUS_ADDR" in environment
    )


def describe_service(addresses: Addresses, key: bytes) -> bytes:
    """What a driver needs to reach the service, as it lies in the store."""
    return json.dumps({"addresses": addresses, "key": key.hex()}).encode()


def read_service(value: bytes) -> tuple[dict[str, list[tuple[str, int]]], bytes]:
    """The opposite of describe_service; ValueError for anything else."""
    try:
        found = json.loads(value)
        addresses = {
            str(name): [(str(host), int(port)) for host, port in pairs]
            for name, pairs in found["addresses"].items()
        }
        return addresses, bytes.fromhex(found["key"])
    except (AttributeError, KeyError, TypeError) as error:
        message = f"expected addresses and key of a worker's service, got {value[:80]!r}"
        raise ValueError(message) from error


class WorkerNotificationService:
    """Takes news from a driver that knows the key."""

    NAME = "worker notification service"

    def __init__(self, key: bytes, nic: str | None, manager: WorkerNotificationManager) -> None:
        """Listen at once."""
        self._manager = manager
        self._server = Server(self.NAME, key, [nic] if nic else None, self._answer)

    def addresses(self) -> dict[str, list[tuple[str, int]]]:
        """Return where it listens, by interface."""
        return self._server.addresses()

    def shutdown(self) -> None:
        """Listen no more."""
        self._server.close()

    def _answer(self, question: Any) -> Any:
        if question.get("call") == "hosts_updated":
            result = HostUpdateResult(int(question["result"]))
            self._manager.handle_hosts_updated(question["timestamp"], result)
        return {}


class WorkerNotificationClient:
    """Tells one worker."""

    def __init__(
        self,
        addresses: Mapping[str, Sequence[tuple[str, int]]],
        key: bytes,
        verbose: int = 0,
        match_intf: bool = False,
    ) -> None:
        """Find out where the worker answers."""
        del verbose, match_intf  # the first address that answers is taken
        self._client = Client(WorkerNotificationService.NAME, addresses, key)

    def notify_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Say what has happened, and when."""
        self._client.ask({"call": "hosts_updated", "timestamp": timestamp, "result": int(update_res)})
