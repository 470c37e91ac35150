"""Driver and workers must have the same horovod: they speak the same protocol only then."""

from __future__ import annotations

from horovod import __version__


class VersionMismatchError(RuntimeError):
    """A worker has another horovod than the driver."""


def own_version() -> str:
    """The version of this process's horovod."""
    return __version__


def check_version(who: str, theirs: str, expected: str) -> None:
    """Refuse a worker (`who` names it and its host) with another version than the driver's."""
    if theirs == expected:
        return
    message = (
        f"{who} has horovod {theirs}, the driver has horovod {expected}: "
        "install the same version on every node of the cluster"
    )
    raise VersionMismatchError(message)
