"""A shell command whose processes end when they are told to, with output that can carry a prefix.

The workers of a job are started and ended by the native launcher; this is for programs that start
others themselves.
"""

from __future__ import annotations

import codecs
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import IO, Any, TextIO

from ._parent_watch import ParentWatch

GRACEFUL_TERMINATION_TIME_S = 5
_POLL_SECONDS = 0.05
_CHUNK_BYTES = 1 << 16
_LINE_END = re.compile(r"(?<=[\n\r])")


def _create_event(context: Any) -> Any:
    """An event of a context; programs that start others under test replace this. Nothing here needs one."""
    return context.Event()


def _prefix(stream: str | None, index: int | None, with_timestamp: bool) -> str:
    if index is None or stream is None:
        return ""
    time_text = time.asctime(time.localtime(time.time())) if with_timestamp else ""
    return f"{time_text}[{index}]<{stream}>:"


def prefix_connection(
    src_connection: Any,
    dst_stream: TextIO,
    prefix: str | None,
    index: int | None,
    prefix_output_with_timestamp: bool,
) -> None:
    """Copy bytes of a file to a text stream by whole lines, at the end also a part of one.

    Each begins with a prefix, if both `prefix` and `index` are given.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    ended = False
    while not ended:
        data = os.read(src_connection.fileno(), _CHUNK_BYTES)
        ended = not data
        *lines, rest = _LINE_END.split(rest + decoder.decode(data, final=ended))
        if ended and rest:
            lines.append(rest)
        dst_stream.writelines(_prefix(prefix, index, prefix_output_with_timestamp) + line for line in lines)
        dst_stream.flush()


def _copy_to_end(source: IO[bytes], *arguments: Any) -> None:
    with source:
        prefix_connection(source, *arguments)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> bool:
    """Whether there was still somebody to signal."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def terminate_executor_shell_and_children(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the shell and all of its group, SIGKILL to what is left after the time of grace."""
    if not _signal_group(process, signal.SIGTERM):
        return
    end = time.monotonic() + GRACEFUL_TERMINATION_TIME_S
    while time.monotonic() < end:
        process.poll()  # an ended shell that nobody waits for still counts as one of the group
        try:
            os.killpg(process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(_POLL_SECONDS)
    _signal_group(process, signal.SIGKILL)


def _wait(process: subprocess.Popen[bytes], events: Iterable[threading.Event]) -> int:
    watched = list(events)
    while True:
        with suppress(subprocess.TimeoutExpired):
            # Never for ever: a signal that comes just before a wait does not end it.
            return process.wait(_POLL_SECONDS)
        if any(event.is_set() for event in watched):
            terminate_executor_shell_and_children(process)
            return process.wait()


def execute(
    command: str,
    env: Mapping[str, str] | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    index: int | None = None,
    events: Iterable[threading.Event] | None = None,
    prefix_output_with_timestamp: bool = False,
) -> int:
    """Run the command in a shell and return its exit code, 128 + S if signal S killed it.

    Its processes are ended when one of the events is set, this call is interrupted or this process is
    killed. With an index, every line of output begins with `[index]<stdout>:` or `[index]<stderr>:`.
    """
    watch = ParentWatch(GRACEFUL_TERMINATION_TIME_S)
    try:
        return _execute(command, env, (stdout, stderr), index, events, prefix_output_with_timestamp, watch)
    finally:
        watch.dismiss()


def _execute(
    command: str,
    env: Mapping[str, str] | None,
    streams: tuple[TextIO | None, TextIO | None],
    index: int | None,
    events: Iterable[threading.Event] | None,
    prefix_output_with_timestamp: bool,
    watch: ParentWatch,
) -> int:
    process = subprocess.Popen(  # noqa: S602 - the caller gives a shell command
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if env is None else dict(env),
        start_new_session=True,
    )
    watch.guard(process.pid)
    copiers = []
    for source, destination, name in (
        (process.stdout, streams[0] or sys.stdout, "stdout"),
        (process.stderr, streams[1] or sys.stderr, "stderr"),
    ):
        arguments = (source, destination, name, index, prefix_output_with_timestamp)
        copiers.append(threading.Thread(target=_copy_to_end, args=arguments, daemon=True))
        copiers[-1].start()
    try:
        code = _wait(process, events or ())
    except BaseException:
        terminate_executor_shell_and_children(process)
        raise
    for copier in copiers:
        # What the command left running may hold the pipe open for ever.
        copier.join(GRACEFUL_TERMINATION_TIME_S)
    return code if code >= 0 else 128 - code
