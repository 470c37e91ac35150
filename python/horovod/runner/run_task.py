"""One rank of horovod.run: `python -m horovod.runner.run_task FOLDER DIGEST`."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

# An exception travels by the name of its public module, if that is imported; else as another class.
import horovod.common.exceptions  # noqa: F401
from horovod.runner._shipment import (
    FOLDER_VARIABLE,
    FROM_ENVIRONMENT,
    Call,
    Failure,
    load_call,
    store_failure,
    store_result,
)
from horovod.runner.common.util.env import get_env_rank_and_size

_ARGUMENTS = 2


def _load(folder: Path, digest: str, rank: int, host: str) -> Call:
    try:
        return load_call(folder, digest)
    except FileNotFoundError:
        message = (
            f"horovod.run: rank {rank} on host {host} does not see the function: {folder} is not there. "
            "All hosts must share the folder; HOROVOD_RUN_DIRECTORY names one that they share"
        )
        raise SystemExit(message) from None
    except PermissionError as error:
        message = f"horovod.run: rank {rank} on host {host} does not take the function: {error}"
        raise SystemExit(message) from None


def _is_planned_leave(error: BaseException) -> bool:
    is_elastic = os.environ.get("HOROVOD_ELASTIC") == "1"
    return is_elastic and isinstance(error, SystemExit) and not error.code


def main(arguments: Sequence[str]) -> int:
    """Call the function and store what it returns or raises."""
    if len(arguments) != _ARGUMENTS:
        message = (
            f"run_task: expected a folder and a digest, got {len(arguments)} arguments; horovod.run calls it"
        )
        raise SystemExit(message)
    place, digest = arguments
    folder = Path(os.environ[FOLDER_VARIABLE] if place == FROM_ENVIRONMENT else place)
    rank, _ = get_env_rank_and_size()
    host = os.environ.get("HOROVOD_HOSTNAME") or platform.node()
    call = _load(folder, digest, rank, host)
    sys.path += [entry for entry in call.path if entry not in sys.path]
    try:
        func, args, kwargs = call.unpickle()
        result = func(*args, **kwargs)
        rank, _ = get_env_rank_and_size()  # in an elastic job another one than at the start
        store_result(folder, rank, result)
    except BaseException as error:
        if not _is_planned_leave(error):
            store_failure(folder, Failure.of(error, rank, host))
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
