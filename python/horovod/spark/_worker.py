"""The process of one rank: `main([CALLS, ANSWERS])`, started by its task.

Two inherited pipes connect it with the task: it reads the function, then its place in the job, and writes
what the function returned or raised. It starts while the tasks still find out who is who.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from horovod._cluster import failures
from horovod._cluster.elastic.seat import Seat, is_farewell, take_seat
from horovod._cluster.enter import enter
from horovod._cluster.failures import call_as_rank, failure_of
from horovod._cluster.job import Assignment
from horovod._cluster.places import Place
from horovod.runner._shipment import Failure, import_cloudpickle

from ._failure_text import to_json
from ._frames import Kind, read_frame, write_frame

WORK_FOLDER_VARIABLE = "HOROVOD_SPARK_WORK_DIR"
_ARGUMENTS = (2, 3)
_MOST_LOG_CHARACTERS = 4000


class _Answers:
    """The pipe to the task; threads of the function may log while it runs."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, kind: Kind, body: bytes) -> None:
        with self._lock:
            write_frame(self._stream, kind, body)


_answers: _Answers | None = None


def log_to_driver(message: str) -> None:
    """Show a message where the job was started: `horovod.spark.log_to_driver`."""
    text = str(message)[:_MOST_LOG_CHARACTERS]
    if _answers is None:  # a process that horovodrun or the user started
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        return
    _answers.send(Kind.LOG, text.encode("utf-8", "replace"))


def pack_assignment(assignment: Assignment) -> bytes:
    """An assignment for the pipe."""
    place = assignment.place
    return json.dumps(
        {
            "job": assignment.job,
            "version": assignment.version,
            "place": {name: getattr(place, name) for name in Place.__slots__},
            "host": assignment.host,
            "meeting": assignment.meeting,
            "key": None if assignment.key is None else assignment.key.hex(),
            "variables": dict(assignment.variables),
        }
    ).encode()


def unpack_assignment(body: bytes) -> Assignment:
    """The reverse of `pack_assignment`."""
    fields = json.loads(body)
    meeting, key = fields["meeting"], fields["key"]
    return Assignment(
        job=fields["job"],
        version=fields["version"],
        place=Place(**fields["place"]),
        host=fields["host"],
        meeting=None if meeting is None else (meeting[0], meeting[1]),
        key=None if key is None else bytes.fromhex(key),
        variables=fields["variables"],
    )


def _receive(calls: BinaryIO) -> tuple[bytes, list[str], Assignment | Seat]:
    """The function, the driver's folders, and the place; SystemExit if the task went away."""
    parts: dict[Kind, bytes] = {}
    while Kind.PLACE not in parts and Kind.SEAT not in parts:
        frame = read_frame(calls)
        if frame is None:
            raise SystemExit(1)
        parts[frame[0]] = frame[1]
    call = parts[Kind.CALL]
    length = int.from_bytes(call[:4], "big")
    place = (
        Seat.from_json(parts[Kind.SEAT].decode())
        if Kind.SEAT in parts
        else unpack_assignment(parts[Kind.PLACE])
    )
    return call[4 + length :], json.loads(call[4 : 4 + length]), place


def pack_call(path: Sequence[str], pickled: bytes) -> bytes:
    """Folders and function for the pipe."""
    folders = json.dumps(list(path)).encode()
    return len(folders).to_bytes(4, "big") + folders + pickled


def _perform(pickled: bytes, path: Sequence[str], place: Assignment | Seat, channel: int | None) -> bytes:
    """Enter the job and call the function; its result, pickled."""
    if isinstance(place, Assignment):
        enter(place)
    elif channel is not None:
        take_seat(place, channel)
    folder = os.environ.get(WORK_FOLDER_VARIABLE)
    if folder:
        os.chdir(folder)
    sys.path += [entry for entry in path if entry not in sys.path and Path(entry).exists()]
    function, args, kwargs = pickle.loads(pickled)  # noqa: S301 - from the driver, through Spark
    result: Any = call_as_rank(function, *args, **kwargs)
    data: bytes = import_cloudpickle().dumps(result)
    return data


def _without_own_frames(error: BaseException) -> BaseException:
    """Its traceback from the function on; one frame of ours stays, which `failure_of` takes away."""
    own = {__file__, failures.__file__}
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        if frames.tb_next.tb_frame.f_code.co_filename not in own:
            break
        frames = frames.tb_next
    return error.with_traceback(frames)


def main(arguments: Sequence[str]) -> int:
    """Be one rank."""
    global _answers  # noqa: PLW0603 - a process has one task
    if len(arguments) not in _ARGUMENTS:
        got = list(arguments)
        message = f"horovod.spark._worker: expected two or three descriptors, got {got}; a task starts it"
        raise SystemExit(message)
    descriptors = [int(word) for word in arguments]
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    with os.fdopen(descriptors[0], "rb") as calls, os.fdopen(descriptors[1], "wb") as stream:
        answers = _answers = _Answers(stream)
        pickled, path, place = _receive(calls)
        rank = place.place.rank if isinstance(place, Assignment) else place.worker
        channel = descriptors[2] if len(descriptors) == max(_ARGUMENTS) else None
        try:
            answers.send(Kind.RESULT, _perform(pickled, path, place, channel))
        except BaseException as error:  # noqa: BLE001 - the driver shall know, whatever it is
            if isinstance(place, Seat) and is_farewell(error):
                return 0
            failure: Failure = failure_of(_without_own_frames(error), rank)
            answers.send(Kind.FAILURE, to_json(failure).encode())
            sys.stderr.write(failure.traceback)
            return 1
        finally:
            _answers = None
    return 0
