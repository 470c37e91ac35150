"""What a worker of an elastic job needs before it knows its rank. Pure, but for `take_seat`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from horovod._cluster.enter import FOREIGN, key_descriptor
from horovod._cluster.versions import check_version, own_version
from horovod._core.errors import REMOVED, HorovodInternalError

CHANNEL_VARIABLE = "HOROVOD_ELASTIC_FD"


@dataclass(frozen=True, slots=True)
class Seat:
    """One worker: its number, its host as the engine tells hosts apart, where it calls the driver."""

    job: str
    version: str
    worker: int
    host: str
    slot: int
    store: str
    driver: Mapping[str, list[tuple[str, int]]]
    key: bytes = field(repr=False)
    variables: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """For engines that carry text."""
        return json.dumps({**asdict(self), "key": self.key.hex()})

    @staticmethod
    def from_json(text: str) -> Seat:
        """The reverse of `to_json`."""
        fields = json.loads(text)
        return Seat.from_fields({**fields, "key": bytes.fromhex(fields["key"])})

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> Seat:
        """Of values that came as JSON; TypeError if some are missing."""
        return Seat(**fields)


def variables_of(seat: Seat) -> dict[str, str]:
    """The environment of the worker, but for descriptors. Its rank is a guess until hvd.init()."""
    chosen = dict(seat.variables)
    chosen.update(
        {
            "HOROVOD_RANK": str(seat.worker),
            "HOROVOD_SIZE": str(seat.worker + 1),
            "HOROVOD_LOCAL_RANK": str(seat.slot),
            "HOROVOD_LOCAL_SIZE": str(seat.slot + 1),
            "HOROVOD_CROSS_RANK": "0",
            "HOROVOD_CROSS_SIZE": "1",
            "HOROVOD_HOSTNAME": seat.host,
            "HOROVOD_JOB_ID": seat.job,
            "HOROVOD_STORE_ADDRESSES": seat.store,
            "HOROVOD_ELASTIC": "1",
            # MPI may be loaded in the engine's processes; it did not start them.
            "HOROVOD_CONTROLLER": "native",
        }
    )
    if chosen.get("HOROVOD_CPU_OPERATIONS", "").lower() != "gloo":
        chosen["HOROVOD_CPU_OPERATIONS"] = "native"
    return chosen


def is_farewell(error: BaseException) -> bool:
    """Whether a worker that raised this had to go, or wanted to: no failure."""
    if isinstance(error, SystemExit):
        return error.code in {0, None}
    return isinstance(error, HorovodInternalError) and error.status == REMOVED


def take_seat(seat: Seat, channel: int) -> None:
    """Take part in the job from the next hvd.init() on, in the worker, once per process.

    `channel` is the core's end of the socket pair. VersionMismatchError if this worker has another
    horovod than the driver.
    """
    check_version(f"worker {seat.worker} (host {seat.host})", own_version(), seat.version)
    for name in FOREIGN:
        os.environ.pop(name, None)
    os.environ.update(variables_of(seat))
    os.environ["HOROVOD_KEY_FD"] = str(key_descriptor(seat.key))
    os.environ[CHANNEL_VARIABLE] = str(channel)
