"""A stream inside one process."""

from __future__ import annotations

import threading


class Pipe:
    """What one thread writes, another reads; a writer waits until its text was taken."""

    def __init__(self) -> None:
        """Make an empty, open one."""
        self._text: str | bytes | None = None
        self._closed = False
        self._changed = threading.Condition()

    def write(self, buf: str | bytes) -> int:
        """Hand the text over; waits while the one before has not been read."""
        with self._changed:
            self._changed.wait_for(lambda: self._text is None or self._closed)
            if self._closed:
                message = "the pipe is closed"
                raise RuntimeError(message)
            self._text = buf
            self._changed.notify_all()
            return len(buf)

    def read(self, length: int = -1, timeout: float | None = None) -> str | bytes | None:
        """Take up to `length` characters; None at the end or when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._text is not None or self._closed, timeout)
            text = self._text
            if text is None:
                return None
            rest = text[length:] if length >= 0 else text[:0]
            self._text = rest or None
            self._changed.notify_all()
            return text[: len(text) - len(rest)]

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """End the stream; what was written can still be read."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
