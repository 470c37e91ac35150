"""The tf.data service for training jobs: where it is, sending datasets to it, and what its processes run."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from horovod.runner.common.service.compute_service import ComputeClient
from horovod.runner.common.util.timeout import TimeoutException

from . import _servers

_POLL_SECONDS = 1.0
_SIDES = ("compute", "training")


@dataclass(frozen=True)
class TfDataServiceConfig:
    """Where the compute service is, and how many dispatchers and workers there are.

    `key` lets whoever has it take part: files with it are readable by their owner alone.
    """

    dispatchers: int
    workers_per_dispatcher: int
    dispatcher_side: str
    addresses: dict[str, list[tuple[str, int]]]
    key: bytes
    timeout: int = 60

    def __post_init__(self) -> None:
        """Refuse sides that there are not."""
        if self.dispatcher_side not in _SIDES:
            message = f"dispatcher_side must be 'compute' or 'training', got {self.dispatcher_side!r}"
            raise ValueError(message)

    def compute_client(self, verbose: int = 1) -> ComputeClient:
        """Return a client of the compute service."""
        return ComputeClient(self.addresses, self.key, verbose=verbose)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; the key as hexadecimal digits."""
        return {
            "dispatchers": self.dispatchers,
            "workers_per_dispatcher": self.workers_per_dispatcher,
            "dispatcher_side": self.dispatcher_side,
            "addresses": self.addresses,
            "key": self.key.hex(),
            "timeout": self.timeout,
        }

    @staticmethod
    def from_dict(config: dict[str, Any]) -> TfDataServiceConfig:
        """Undo to_dict."""
        try:
            addresses = config["addresses"]
            return TfDataServiceConfig(
                dispatchers=int(config["dispatchers"]),
                workers_per_dispatcher=int(config["workers_per_dispatcher"]),
                dispatcher_side=config["dispatcher_side"],
                addresses={
                    name: [(str(host), int(port)) for host, port in pairs]
                    for name, pairs in addresses.items()
                },
                key=bytes.fromhex(config["key"]),
                timeout=int(config.get("timeout", 60)),
            )
        except (AttributeError, KeyError, TypeError) as error:
            message = f"this is not a configuration of a tf.data service: {error!r}"
            raise ValueError(message) from error

    def write(self, filename: str) -> None:
        """Write it as JSON; whoever reads the file finds all of it."""
        path = Path(filename)
        # Made readable by its owner alone.
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(self.to_dict(), file)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @staticmethod
    def read(filename: str, wait_for_file_creation: bool = False) -> TfDataServiceConfig:
        """Read what write has written; if asked to, wait for the file, as long as that takes.

        The file says whom this process asks for data: it has to belong to this user, and others may neither
        read nor write it.
        """
        path = Path(filename)
        while wait_for_file_creation and not path.exists():
            time.sleep(_POLL_SECONDS)
        return TfDataServiceConfig.from_dict(json.loads(_read_own_file(path)))


def _read_own_file(path: Path) -> str:
    """Read a file that nobody else can have written; what was looked at is what is read."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), encoding="utf-8") as file:
        state = os.fstat(file.fileno())
        if state.st_uid != os.geteuid():
            message = f"{path} belongs to user {state.st_uid}, expected user {os.geteuid()}"
            raise PermissionError(message)
        if state.st_mode & 0o077:
            mode = stat.S_IMODE(state.st_mode)
            message = f"others may read or write {path}: expected mode 0600, got {mode:04o}"
            raise PermissionError(message)
        return file.read()


def _dispatcher_of(config: TfDataServiceConfig, rank: int) -> int:
    """Return the dispatcher that a rank of the training job uses."""
    if config.dispatcher_side == "training" and config.dispatchers > 1 and rank >= config.dispatchers:
        message = (
            f"with several dispatchers on the training side every rank runs one: rank {rank} needs "
            f"at least {rank + 1} dispatchers, the compute job has {config.dispatchers}"
        )
        raise ValueError(message)
    return rank % config.dispatchers


@contextlib.contextmanager
def tf_data_service(compute_config: TfDataServiceConfig, rank: int) -> Iterator[str]:
    """Yield the address of the dispatcher that this rank uses, once it and its workers are there.

    With dispatchers on the training side this process runs one while the context lasts: rank 0, or with
    several dispatchers every rank.
    """
    dispatcher = _dispatcher_of(compute_config, rank)
    client = compute_config.compute_client()
    server = None
    if compute_config.dispatcher_side == "training" and (compute_config.dispatchers > 1 or rank == 0):
        server = _servers.Dispatcher(client.own_address)
    try:
        if server is not None:
            client.register_dispatcher(dispatcher, server.address)
        address = client.wait_for_dispatcher_registration(dispatcher, compute_config.timeout)
        client.wait_for_dispatcher_worker_registration(dispatcher, compute_config.timeout)
        yield address
    finally:
        if server is not None:
            server.stop()


def send_to_data_service(
    dataset: Any,
    compute_config: TfDataServiceConfig,
    rank: int,
    size: int | None = None,
    processing_mode: str = "distributed_epoch",
    reuse_dataset: bool = False,
    round_robin: bool = False,
) -> Any:
    """Return the dataset as the workers of the tf.data service prepare it; a method of tf.data.Dataset, too.

    `reuse_dataset`: all ranks read one and the same dataset, each element once; with `round_robin` in turns.
    """
    if compute_config.dispatcher_side == "training":
        message = (
            "send_to_data_service: with dispatchers on the training side use the context manager "
            "tf_data_service, which keeps them running"
        )
        raise RuntimeError(message)
    in_turns = reuse_dataset and round_robin
    with tf_data_service(compute_config, rank) as address:
        return dataset.apply(
            tf.data.experimental.service.distribute(
                processing_mode=processing_mode,
                service=address,
                job_name="job" if reuse_dataset else None,
                consumer_index=rank if in_turns else None,
                num_consumers=size if in_turns else None,
            )
        )


tf.data.Dataset.send_to_data_service = send_to_data_service


def compute_worker_fn(compute_config: TfDataServiceConfig) -> None:
    """Be a process of the compute job: run a worker, maybe a dispatcher, until the service is shut down."""
    import horovod.tensorflow as hvd  # noqa: PLC0415 - not needed by those who train

    hvd.init()
    dispatcher_id, index = divmod(hvd.rank(), compute_config.workers_per_dispatcher)
    client = compute_config.compute_client()
    with contextlib.ExitStack() as servers:
        if compute_config.dispatcher_side == "compute" and index == 0:
            dispatcher = _servers.Dispatcher(client.own_address)
            servers.callback(dispatcher.stop)
            client.register_dispatcher(dispatcher_id, dispatcher.address)
        address = client.wait_for_dispatcher_registration(dispatcher_id, compute_config.timeout)
        worker = _servers.Worker(client.own_address, address)
        try:
            client.register_worker_for_dispatcher(dispatcher_id, hvd.rank())
            client.wait_for_shutdown()
        finally:
            worker.stop()
        hvd.barrier()  # dispatchers outlive their workers, which ask them until they stop


__all__ = [
    "TfDataServiceConfig",
    "TimeoutException",
    "compute_worker_fn",
    "send_to_data_service",
    "tf_data_service",
]
