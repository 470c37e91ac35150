"""The program of a compute job: every process is a worker of a tf.data service.

horovodrun -np 4 python -m horovod.tensorflow.data.compute_worker /shared/compute.json
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import horovod.tensorflow as hvd
from horovod.runner.common.service.compute_service import ComputeService
from horovod.runner.common.util import secret
from horovod.tensorflow.data.compute_service import TfDataServiceConfig, compute_worker_fn

_REMOVAL_SECONDS = 1.0
_POLL_SECONDS = 0.01


def main(dispatchers: int, dispatcher_side: str, configfile: str, timeout: int) -> None:
    """Run a worker in every process of this job, and write for the training job where they are.

    Ends in all processes at once when somebody has shut the service down. Who asked for the file removes it.
    Programs do so in the process of rank 0, and go on to the next service: others wait for that, a moment.
    """
    hvd.init()
    if dispatchers <= 0 or hvd.size() % dispatchers:
        message = (
            f"the number of processes, {hvd.size()}, must be a multiple of the dispatchers, {dispatchers}"
        )
        raise ValueError(message)
    workers_per_dispatcher = hvd.size() // dispatchers

    service, described = None, None
    if hvd.rank() == 0:
        key = secret.make_secret_key()
        service = ComputeService(dispatchers, workers_per_dispatcher, key)
        config = TfDataServiceConfig(
            dispatchers, workers_per_dispatcher, dispatcher_side, service.addresses(), key, timeout
        )
        config.write(configfile)
        described = config.to_dict()
    try:
        described = hvd.broadcast_object(described, name="TfDataServiceConfig")
        file = _File(configfile)
        compute_worker_fn(TfDataServiceConfig.from_dict(described))
    finally:
        if service is not None:
            service.shutdown()
    hvd.barrier()
    if service is None:
        _let_go(file)


class _File:
    """A file as it is now, if there is one: on this host there need not be."""

    def __init__(self, name: str) -> None:
        self._path = Path(name)
        self._state = self._now()

    def _now(self) -> tuple[int, int] | None:
        try:
            state = self._path.stat()
        except OSError:
            return None
        return state.st_ino, state.st_mtime_ns

    @property
    def is_still_there(self) -> bool:
        """Whether it is there, and the same."""
        return self._state is not None and self._now() == self._state


def _let_go(file: _File) -> None:
    """Wait until a file that describes what has ended is gone, lest somebody here reads it again."""
    deadline = time.monotonic() + _REMOVAL_SECONDS
    while file.is_still_there and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m horovod.tensorflow.data.compute_worker")
    parser.add_argument("configfile", help="where to write how the training job finds this one")
    parser.add_argument("--dispatchers", type=int, default=1, help="number of dispatchers (1)")
    parser.add_argument(
        "--dispatcher-side",
        choices=["compute", "training"],
        default="compute",
        help="who runs them (compute)",
    )
    parser.add_argument("--timeout", type=int, default=60, help="seconds to wait for each other (60)")
    return parser.parse_args()


if __name__ == "__main__":
    given = _parse_arguments()
    main(given.dispatchers, given.dispatcher_side, given.configfile, given.timeout)
