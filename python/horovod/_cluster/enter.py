"""Takes a worker process into a job: after `enter`, hvd.init() finds its place there.

Runs in the worker, in one thread at a time. The key goes to the core as a sealed memory file.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from horovod._core import _native

from .job import Assignment
from .rendezvous import release_port
from .versions import check_version, own_version

# What other launchers, or an outer job, may have left in the environment of the engine's processes.
FOREIGN = (
    "HOROVOD_STORE_ADDRESSES",
    "HOROVOD_STORE_PORT",
    "HOROVOD_RENDEZVOUS_ADDR",
    "HOROVOD_RENDEZVOUS_PORT",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR",
    "HOROVOD_GLOO_RENDEZVOUS_PORT",
    "HOROVOD_GLOO_IFACE",
    "HOROVOD_KEY_FD",
    "HOROVOD_ELASTIC",
    "HOROVOD_ELASTIC_FD",
    "HOROVOD_FAILURE_NOTE",
)


@dataclass(slots=True)
class _Entered:
    """What `enter` changed, so that `leave` can undo it."""

    before: dict[str, str | None] = field(default_factory=dict)
    key_descriptor: int | None = None


_entered: _Entered | None = None


def key_descriptor(key: bytes) -> int:
    """A memory file with the key that nobody can change; closed when the process executes another."""
    descriptor = os.memfd_create("horovod-key", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.write(descriptor, key)
        fcntl.fcntl(
            descriptor,
            fcntl.F_ADD_SEALS,
            fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE,
        )
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def variables_of(assignment: Assignment) -> dict[str, str]:
    """The environment of a rank, but for its key. The user's variables cannot change its place."""
    chosen = dict(assignment.variables)
    chosen.update(assignment.place.variables())
    chosen["HOROVOD_HOSTNAME"] = assignment.host
    chosen["HOROVOD_JOB_ID"] = assignment.job
    # MPI may be loaded in the engine's processes; it did not start them. A user may still ask for Gloo.
    chosen["HOROVOD_CONTROLLER"] = "native"
    if chosen.get("HOROVOD_CPU_OPERATIONS", "").lower() != "gloo":
        chosen["HOROVOD_CPU_OPERATIONS"] = "native"
    if assignment.meeting is not None:
        address, port = assignment.meeting
        chosen["HOROVOD_RENDEZVOUS_ADDR"] = address
        chosen["HOROVOD_RENDEZVOUS_PORT"] = str(port)
    return chosen


def _set(changes: Mapping[str, str | None], entered: _Entered) -> None:
    for name, value in changes.items():
        entered.before.setdefault(name, os.environ.get(name))
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def enter(assignment: Assignment) -> None:
    """Take part in a job from the next hvd.init() on. A job that this process was in before is left.

    May block for the ten seconds that a shutdown takes at most. VersionMismatchError if this
    worker has another horovod than the driver.
    """
    global _entered  # noqa: PLW0603 - a process has one environment
    place = assignment.place
    check_version(f"rank {place.rank} (host {assignment.host})", own_version(), assignment.version)
    leave()
    if place.rank != 0 or assignment.meeting is None:
        release_port()
    entered = _Entered()
    _entered = entered
    _set(dict.fromkeys(FOREIGN), entered)
    _set(variables_of(assignment), entered)
    if assignment.key is not None:
        entered.key_descriptor = key_descriptor(assignment.key)
        _set({"HOROVOD_KEY_FD": str(entered.key_descriptor)}, entered)


def leave() -> None:
    """Shut the core down if it runs, and take back what `enter` set. Without `enter` nothing happens."""
    global _entered  # noqa: PLW0603 - a process has one environment
    if _native.is_initialized():
        _native.shutdown()
    if _entered is None:
        return
    for name, value in _entered.before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if _entered.key_descriptor is not None:
        os.close(_entered.key_descriptor)
    _entered = None
