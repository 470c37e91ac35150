"""A time by which something must have happened."""

from __future__ import annotations

import time


class TimeoutException(Exception):  # noqa: N818 - name of the public interface
    """Something did not happen in time."""

    def __init__(self, message: str) -> None:
        """Keep the text where programs look for it."""
        super().__init__(message)
        self.message = message


class Timeout:
    """Counts from its creation. `message` may hold {activity}, and {timeout}: the seconds allowed."""

    def __init__(self, timeout: float, message: str) -> None:
        """Start to count; `timeout` in seconds."""
        self._timeout = timeout
        self._end = time.monotonic() + timeout
        self._message = message

    def remaining(self) -> float:
        """Seconds left, 0 at least."""
        return max(0.0, self._end - time.monotonic())

    def timed_out(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._end

    def check_time_out_for(self, activity: str) -> None:
        """Raise TimeoutException if the time is over."""
        if self.timed_out():
            text = self._message.format(activity=activity, timeout=self._timeout).rstrip()
            stop = "" if text.endswith(".") else "."
            message = f"{text}{stop} Timeout after {self._timeout} seconds."
            raise TimeoutException(message)
