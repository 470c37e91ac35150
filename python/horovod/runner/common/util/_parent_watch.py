"""The end of a group of processes when the process that started it is killed, even by SIGKILL."""

from __future__ import annotations

import subprocess
from contextlib import suppress

# Reads the group, then waits for a second line: whoever dies closes the pipe without writing it. A shell,
# since it starts at once; in a session of its own, since what ends a terminal's job must not end it.
_WATCHER = """
read -r group || exit 0
read -r _ && exit 0
kill -s TERM -- "-$group" || exit 0
seconds=$1
while [ "$seconds" -gt 0 ]; do
  sleep 1
  kill -s 0 -- "-$group" || exit 0
  seconds=$((seconds - 1))
done
kill -s KILL -- "-$group"
"""


class ParentWatch:
    """Ends a group (SIGTERM, after `grace_seconds` SIGKILL) if this process dies before dismiss()."""

    def __init__(self, grace_seconds: int) -> None:
        """Start the watcher; it does nothing yet."""
        self._watcher = subprocess.Popen(  # noqa: S603 - our own text
            ["/bin/sh", "-c", _WATCHER, "horovod-watch", str(grace_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def guard(self, group: int) -> None:
        """Name the group that must not outlive this process."""
        self._say(f"{group}\n".encode())

    def dismiss(self) -> None:
        """Stop watching; the group may live on."""
        self._say(b"done\n")
        if self._watcher.stdin is not None:
            with suppress(OSError):
                self._watcher.stdin.close()
        self._watcher.wait()

    def _say(self, line: bytes) -> None:
        # Without its watcher, which somebody may have killed, a command still runs.
        with suppress(OSError):
            if self._watcher.stdin is not None:
                self._watcher.stdin.write(line)
                self._watcher.stdin.flush()
