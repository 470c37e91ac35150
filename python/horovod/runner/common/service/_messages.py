"""Questions and answers over a channel, one of each: JSON, which is plain data that nobody executes."""

from __future__ import annotations

import json
from typing import Any

from ._channel import Channel

MAX_BODY_BYTES = 64 * 1024

_QUESTION_OR_ANSWER = 0  # which of them, the direction says


def send_message(channel: Channel, body: Any) -> None:
    """Ask, or answer."""
    text = json.dumps(body).encode()
    if len(text) > MAX_BODY_BYTES:
        message = f"a message of {len(text)} bytes is too long, at most {MAX_BODY_BYTES} are sent"
        raise ValueError(message)
    channel.send(_QUESTION_OR_ANSWER, text)


def receive_message(channel: Channel, deadline: float | None = None) -> Any:
    """Return what is asked or answered; all of it comes before the deadline, if there is one."""
    return json.loads(channel.receive(MAX_BODY_BYTES, deadline)[1])
