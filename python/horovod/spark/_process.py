"""A worker process as its task sees it: start, place, output, end.

The process leads a group of its own. It ends with the task: by `end`, or, if Spark kills the task's process,
by a watcher that notices.
"""

from __future__ import annotations

import codecs
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO

from horovod._cluster.elastic.seat import Seat
from horovod._cluster.job import Assignment
from horovod.runner.common.util._parent_watch import ParentWatch

from ._frames import Kind, read_frame, write_frame
from ._order import Order
from ._worker import pack_assignment, pack_call

PYTHONPATH_VARIABLE = "HOROVOD_SPARK_PYTHONPATH"
DEVICES_VARIABLE = "HOROVOD_SPARK_DEVICES"

# Not -m: the module is imported under its own name, so that the function finds the same one.
_PROGRAM = "import sys; from horovod.spark._worker import main; sys.exit(main(sys.argv[1:]))"

_CHUNK_BYTES = 1 << 16
_GRACE_SECONDS = 2
_DRAIN_SECONDS = 5.0
_LINE_END = re.compile(r"(?<=[\n\r])")

# How a worker of Spark talks to its executor: no business of the function's process.
_PRIVATE = ("PYTHON_WORKER_FACTORY_SECRET", "PYTHON_WORKER_FACTORY_PORT", "PYTHON_WORKER_FACTORY_SOCK_DIR")

Output = Callable[[str, str], None]
"""Takes the name of a stream, and text."""


def own_folders(path: list[str], prefixes: tuple[str, ...]) -> list[str]:
    """The entries of sys.path that did not come with the interpreter: files that the user gave Spark."""
    return [
        entry
        for entry in path
        if entry and not any(entry == prefix or entry.startswith(f"{prefix}/lib") for prefix in prefixes)
    ]


def worker_environment(
    order: Order, environment: Mapping[str, str], devices: list[str], path: list[str]
) -> dict[str, str]:
    """The variables of the process: those of the task, over them what the user gave."""
    variables = {name: value for name, value in environment.items() if name not in _PRIVATE}
    variables.update(order.env)
    given = variables.get(PYTHONPATH_VARIABLE, "").split(os.pathsep)
    entries = [*given, *path, *variables.get("PYTHONPATH", "").split(os.pathsep)]
    variables["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(entry for entry in entries if entry))
    variables["PYTHONUNBUFFERED"] = "1"
    if devices:
        variables[DEVICES_VARIABLE] = ",".join(devices)
    return variables


class WorkerProcess:
    """One process; all methods are for the task's thread."""

    def __init__(self, order: Order, devices: list[str], channel: int | None = None) -> None:
        """Start it. It imports what it needs while the task goes on. `channel` is for its core."""
        self._watch = ParentWatch(_GRACE_SECONDS)
        calls_read, calls_write = os.pipe()
        answers_read, answers_write = os.pipe()
        path = own_folders(sys.path, (sys.prefix, sys.base_prefix))
        command = [order.executable or sys.executable, "-c", _PROGRAM]
        channels = () if channel is None else (channel,)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - no shell text
                [*command, *(str(end) for end in (calls_read, answers_write, *channels))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=worker_environment(order, os.environ, devices, path),
                pass_fds=(calls_read, answers_write, *channels),
                start_new_session=True,
            )
        except BaseException:
            os.close(calls_write)
            os.close(answers_read)
            self._watch.dismiss()
            raise
        finally:
            os.close(calls_read)
            os.close(answers_write)
        self._watch.guard(self._process.pid)
        self._calls = os.fdopen(calls_write, "wb")
        self._answers = os.fdopen(answers_read, "rb")
        self._copiers: list[threading.Thread] = []
        self._reader: threading.Thread | None = None
        self._outcome: tuple[Kind, bytes] | None = None
        self._order = order

    def place(self, assignment: Assignment, output: Output) -> None:
        """Give it the function and its place; from now on what it prints goes to `output`."""
        self._begin(Kind.PLACE, pack_assignment(assignment), output)

    def seat(self, seat: Seat, output: Output) -> None:
        """The same in an elastic job."""
        self._begin(Kind.SEAT, seat.to_json().encode(), output)

    def _begin(self, kind: Kind, where: bytes, output: Output) -> None:
        for stream, name in ((self._process.stdout, "stdout"), (self._process.stderr, "stderr")):
            self._start(_copy_lines, stream, name, output)
        self._reader = self._start(self._read_answers, output)
        # A process that died tells by its exit code.
        with suppress(BrokenPipeError):
            write_frame(self._calls, Kind.CALL, pack_call(self._order.path, self._order.call))
            write_frame(self._calls, kind, where)

    def wait(self) -> tuple[int, tuple[Kind, bytes] | None]:
        """Wait for its end: exit code (negative: a signal), and what it answered, if anything.

        Ends with the function, or with the task that Spark kills.
        """
        code = self._process.wait()
        # What the process left running may hold its pipes open for ever.
        for thread in self._copiers:
            thread.join(_DRAIN_SECONDS)
        return code, self._outcome

    def end(self) -> None:
        """End it and what it started, if something is left."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._watch.dismiss()
        with suppress(BrokenPipeError):
            self._calls.close()

    def _start(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._copiers.append(thread)
        thread.start()
        return thread

    def _read_answers(self, output: Output) -> None:
        with self._answers as answers:
            while True:
                frame = read_frame(answers)
                if frame is None:
                    return
                if frame[0] is Kind.LOG:
                    output("log", f"{frame[1].decode('utf-8', 'replace')}\n")
                else:
                    self._outcome = frame


def _copy_lines(source: IO[bytes], name: str, output: Output) -> None:
    """Hand on whole lines, at the end also a part of one."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest, ended = "", False
    with source:
        while not ended:
            data = os.read(source.fileno(), _CHUNK_BYTES)
            ended = not data
            *lines, rest = _LINE_END.split(rest + decoder.decode(data, final=ended))
            if ended and rest:
                lines.append(f"{rest}\n")
            for line in lines:
                output(name, line)
