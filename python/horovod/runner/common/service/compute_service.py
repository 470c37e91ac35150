"""How processes that train find the dispatchers and workers of a tf.data service, and end them.

A compute job has one ComputeService. Its own processes and those of the training job ask it through a
ComputeClient. Whoever has the key may ask; see _channel.py for what goes over the network.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from horovod.runner.common.util.timeout import Timeout

from ._client import Addresses, Client
from ._roster import Roster
from ._server import Server

_LONGEST_WAIT_SECONDS = 5.0
"""What one question waits for at most; a longer wait asks again, and so notices that the service is gone."""

_TOO_LATE = (
    "Timed out waiting for {{activity}}. Try to find out what takes the {who} so long to register "
    "or increase timeout."
)

_ERRORS = {"IndexError": IndexError, "ValueError": ValueError}


def _whole(question: dict[str, Any], name: str) -> int:
    value = question.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        message = f"{question.get('call')}: {name} must be an integer, got {value!r}"
        raise ValueError(message)  # noqa: TRY004 - one kind of error for everything that is asked wrongly
    return value


def _seconds(question: dict[str, Any]) -> float:
    value = question.get("seconds")
    if not isinstance(value, (int, float)):
        message = f"{question.get('call')}: seconds must be a number, got {value!r}"
        raise ValueError(message)  # noqa: TRY004 - as above
    return min(max(float(value), 0.0), _LONGEST_WAIT_SECONDS)


class ComputeService:
    """Knows the dispatchers and workers of a tf.data service; answers until shutdown()."""

    NAME = "Compute service"

    def __init__(
        self,
        dispatchers: int,
        workers_per_dispatcher: int,
        key: bytes,
        nics: Collection[str] | None = None,
    ) -> None:
        """Listen on the interfaces `nics`, or on all of them."""
        for name, count in (
            ("dispatchers", dispatchers),
            ("workers per dispatcher", workers_per_dispatcher),
        ):
            if count <= 0:
                message = f"{self.NAME}: the number of {name} must be larger than 0, got {count}"
                raise ValueError(message)
        self._roster = Roster(dispatchers, workers_per_dispatcher)
        self._server = Server(self.NAME, key, nics, self._answer)

    def addresses(self) -> dict[str, list[tuple[str, int]]]:
        """Return where it listens, by interface."""
        return self._server.addresses()

    def shutdown(self) -> None:
        """Tell those who wait for the end, and close."""
        self._roster.end()
        self._server.close()

    def _answer(self, question: Any) -> dict[str, Any]:
        calls: dict[Any, Callable[[dict[str, Any]], Any]] = {
            "probe": lambda _: self.NAME,
            "register_dispatcher": self._register_dispatcher,
            "register_worker": lambda q: self._roster.register_worker(
                _whole(q, "dispatcher"), _whole(q, "worker")
            ),
            "wait_for_dispatcher": lambda q: self._roster.wait_for_dispatcher(
                _whole(q, "dispatcher"), _seconds(q)
            ),
            "wait_for_workers": lambda q: self._roster.wait_for_workers(_whole(q, "dispatcher"), _seconds(q)),
            "shutdown": lambda _: self._roster.end(),
            "wait_for_shutdown": lambda q: self._roster.wait_for_end(_seconds(q)),
        }
        try:
            call = calls.get(question.get("call")) if isinstance(question, dict) else None
            if call is None:
                message = f"{self.NAME}: there is no call {question!r:.100}"
                raise ValueError(message)  # noqa: TRY301 - answered like the errors of calls
            return {"result": call(question)}
        except (IndexError, ValueError) as error:
            return {"error": type(error).__name__, "message": str(error)}

    def _register_dispatcher(self, question: dict[str, Any]) -> None:
        address = question.get("address")
        if not isinstance(address, str):
            message = f"register_dispatcher: address must be a string, got {address!r}"
            raise ValueError(message)  # noqa: TRY004 - as above
        self._roster.register_dispatcher(_whole(question, "dispatcher"), address)


class ComputeClient:
    """Asks a ComputeService; NoValidAddressesFound if it is at none of the addresses."""

    def __init__(self, addresses: Addresses, key: bytes, verbose: int = 1) -> None:
        """Find the service. `verbose` is of no consequence: the module `logging` decides what is said."""
        del verbose
        self._client = Client(ComputeService.NAME, addresses, key)

    @property
    def own_address(self) -> str:
        """The address by which this host reaches the service."""
        return self._client.own_address

    def register_dispatcher(self, dispatcher_id: int, dispatcher_address: str) -> None:
        """Say where a dispatcher is; IndexError for a wrong id, ValueError if it is known to be elsewhere."""
        self._ask("register_dispatcher", dispatcher=dispatcher_id, address=dispatcher_address)

    def wait_for_dispatcher_registration(self, dispatcher_id: int, timeout: float) -> str:
        """Return the address of a dispatcher; TimeoutException if it has not come after so many seconds."""
        deadline = Timeout(timeout, _TOO_LATE.format(who="dispatcher"))
        activity = f"dispatcher {dispatcher_id} to register"
        return str(self._wait("wait_for_dispatcher", deadline, activity, dispatcher_id))

    def register_worker_for_dispatcher(self, dispatcher_id: int, worker_id: int) -> None:
        """Say that a worker of a dispatcher is ready."""
        self._ask("register_worker", dispatcher=dispatcher_id, worker=worker_id)

    def wait_for_dispatcher_worker_registration(self, dispatcher_id: int, timeout: float) -> None:
        """Wait for all workers of a dispatcher; TimeoutException if some are missing after that time."""
        deadline = Timeout(timeout, _TOO_LATE.format(who="workers"))
        activity = f"workers for dispatcher {dispatcher_id} to register"
        self._wait("wait_for_workers", deadline, activity, dispatcher_id)

    def shutdown(self) -> None:
        """End the tf.data service: all who wait for that go on."""
        self._ask("shutdown")

    def wait_for_shutdown(self) -> None:
        """Wait until somebody ends it; an error if the service goes away without that."""
        while not self._ask("wait_for_shutdown", seconds=_LONGEST_WAIT_SECONDS):
            pass

    def is_running(self) -> bool:
        """Whether the service answers and nobody has ended it; asks it."""
        try:
            return not self._ask("wait_for_shutdown", seconds=0.0)
        except ConnectionError:
            return False

    @property
    def _wait_for_shutdown_thread(self) -> threading.Thread:
        """A thread that ends with the service. Suites of programs join it before they ask is_running()."""

        def wait() -> None:
            with suppress(ConnectionError):
                self.wait_for_shutdown()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        return thread

    def _wait(self, call: str, deadline: Timeout, activity: str, dispatcher_id: int) -> Any:
        while True:
            seconds = min(deadline.remaining(), _LONGEST_WAIT_SECONDS)
            result = self._ask(call, seconds=seconds, dispatcher=dispatcher_id)
            if result:
                return result
            deadline.check_time_out_for(activity)

    def _ask(self, call: str, **arguments: Any) -> Any:
        answer = self._client.ask({"call": call, **arguments}, float(arguments.get("seconds", 0.0)))
        if "error" in answer:
            raise _ERRORS.get(answer["error"], RuntimeError)(answer["message"])
        return answer["result"]
