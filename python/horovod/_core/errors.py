"""Exceptions of the public API. Needs nothing: programs may catch without starting anything.

A status INVALID_ARGUMENT is a ValueError (the caller alone can see what is wrong); every other
status is a HorovodInternalError (a peer, the system or a disagreement of the ranks).
"""

from __future__ import annotations

_PUBLIC_MODULE = "horovod.common.exceptions"

PRECONDITION_ERROR = 2
"""Status of a call before init, and of ranks that do not fit together."""
REMOVED = 12
"""Status of the init of a worker that has no place in its elastic job any more."""


class HorovodInternalError(RuntimeError):
    """A collective operation failed: the tensors do not fit, a peer is gone, or the job ends."""

    __module__ = _PUBLIC_MODULE  # as it is shown and pickled

    status: int | None = None
    """The hvd_status behind it; None when the failure was found before the core was called."""


class HostsUpdatedInterrupt(RuntimeError):  # noqa: N818 - name of the public API
    """The hosts of an elastic job have changed, and its ranks must meet again."""

    __module__ = _PUBLIC_MODULE  # as it is shown and pickled

    def __init__(self, skip_sync: bool = False) -> None:
        """Keep whether all workers that stay have their state already."""
        super().__init__(skip_sync)
        self.skip_sync = skip_sync


def get_version_mismatch_message(name: str, version: str, installed_version: str) -> str:
    """Explain that a framework is not the one that was there at installation."""
    return (
        f"Framework {name} installed with version {installed_version} "
        f"but found version {version}.\n"
        "This can result in unexpected behavior including runtime errors.\n"
        "Reinstall Horovod using `pip install --no-cache-dir` to build with the new version."
    )


class HorovodVersionMismatchError(ImportError):
    """A framework has another version than the one Horovod was installed for."""

    __module__ = _PUBLIC_MODULE  # as it is shown and pickled

    def __init__(self, name: str, version: str, installed_version: str) -> None:
        """Keep the three facts as attributes."""
        super().__init__(get_version_mismatch_message(name, version, installed_version))
        self.name = name
        self.version = version
        self.installed_version = installed_version

    def __reduce__(self) -> tuple[type[HorovodVersionMismatchError], tuple[str, str, str]]:
        """Rebuild from the facts: ImportError would pass on the message alone."""
        return (type(self), (str(self.name), self.version, self.installed_version))
