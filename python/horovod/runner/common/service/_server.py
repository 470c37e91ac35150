"""The end that answers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ._messages import receive_message, send_message
from ._reception import Guest, Reception

_GREETING_SECONDS = 5.0  # for the greeting and the question together, however slowly they come
_MOST_CONNECTIONS = 1024


class Server:
    """Answers questions from its construction until close(); `answer` is called by several threads."""

    def __init__(
        self, name: str, key: bytes, nics: Collection[str] | None, answer: Callable[[Any], Any]
    ) -> None:
        """Listen on the IPv4 addresses of the interfaces, or of all of them; never on a wildcard."""
        self._answer = answer
        self._reception = Reception(name, key, nics, _MOST_CONNECTIONS, _GREETING_SECONDS)
        self._reception.open(self._serve)

    def addresses(self) -> dict[str, list[tuple[str, int]]]:
        """Return where it listens, by interface."""
        return self._reception.addresses()

    def close(self) -> None:
        """Take no more connections, end those that have not asked yet, and give the others time to end."""
        self._reception.close()

    def _serve(self, guest: Guest) -> None:
        question = receive_message(guest.channel, guest.deadline)
        guest.stay()
        answer = self._answer(question)
        guest.channel.connection.settimeout(_GREETING_SECONDS)
        send_message(guest.channel, answer)
