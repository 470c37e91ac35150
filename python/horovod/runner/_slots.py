"""Jobs whose processes another program starts, one for each slot (a cluster's scheduler, say).

The launcher starts processes itself and needs none of this. Here a program gets the text of each command
and says how it ended; rank 0 serves the rendezvous.
"""

from __future__ import annotations

import shlex
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._failure import first_process_text
from .common.util.env import is_exportable
from .common.util.hosts import SlotInfo, get_host_assignments, parse_hosts
from .util.network import find_port
from .util.threads import execute_function_multithreaded

ExecCommand = Callable[[str, SlotInfo, list[threading.Event]], tuple[int, float]]


def create_slot_env_vars(slot_info: SlotInfo) -> dict[str, str]:
    """The variables that tell a process its place."""
    return {
        "HOROVOD_HOSTNAME": str(slot_info.hostname),
        "HOROVOD_RANK": str(slot_info.rank),
        "HOROVOD_SIZE": str(slot_info.size),
        "HOROVOD_LOCAL_RANK": str(slot_info.local_rank),
        "HOROVOD_LOCAL_SIZE": str(slot_info.local_size),
        "HOROVOD_CROSS_RANK": str(slot_info.cross_rank),
        "HOROVOD_CROSS_SIZE": str(slot_info.cross_size),
    }


def create_run_env_vars(
    server_ip: str, nics: Collection[str] | None, port: int, elastic: bool = False
) -> dict[str, str]:
    """The variables by which processes find each other: rank 0 listens at this address and port."""
    variables = {
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": server_ip,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
    }
    if nics:
        names = sorted(nics)
        variables["HOROVOD_GLOO_IFACE"] = names[0]
        variables["NCCL_SOCKET_IFNAME"] = ",".join(names)
    if elastic:
        variables["HOROVOD_ELASTIC"] = "1"
    return variables


def _command_text(slot: SlotInfo, env: Mapping[str, str], run: Mapping[str, str], command: str) -> str:
    # Programs compare the order: place, what the caller gives, rendezvous.
    given = {name: value for name, value in env.items() if is_exportable(name)}
    groups = (create_slot_env_vars(slot), {**given, "PYTHONUNBUFFERED": "1"}, run)
    words = [f"{name}={shlex.quote(str(value))}" for group in groups for name, value in group.items()]
    return " ".join(["env", *words, command])


def _free_port() -> int:
    def take(address: tuple[str, int]) -> None:
        socket.create_server(address).close()

    return find_port(take)[1]


@contextmanager
def _set_by_signals(event: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM end the job instead of this process; only the main thread can say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: event.set()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def launch_gloo(
    command: Sequence[str],
    exec_command: ExecCommand,
    settings: Any,
    nics: Collection[str] | None,
    env: Mapping[str, str],
    server_ip: str,
) -> None:
    """Run the command on every slot of settings.hosts by `exec_command`; RuntimeError if one fails.

    `exec_command(text, slot_info, events)` runs the text on the slot's host, ends it when one of the events
    is set, and returns exit code and time of the end. `server_ip` is an address of rank 0's host; jobs on
    several hosts also need HOROVOD_KEY_FILE in `env`.
    """
    if settings.output_filename:
        Path(settings.output_filename).mkdir(parents=True, exist_ok=True)
    slots = get_host_assignments(parse_hosts(settings.hosts), settings.num_proc, settings.num_proc)
    run = create_run_env_vars(server_ip, nics, _free_port())
    words = " ".join(shlex.quote(word) for word in command)
    end = threading.Event()

    def run_slot(slot: SlotInfo) -> tuple[int, float]:
        code, when = exec_command(_command_text(slot, env, run, words), slot, [end])
        if code != 0:
            end.set()  # the others would wait for it
        return code, when

    with _set_by_signals(end):
        results = execute_function_multithreaded(run_slot, [(slot,) for slot in slots]) or {}
    failures = [(when, rank, code) for rank, (code, when) in results.items() if code != 0]
    if failures:
        _, rank, code = min(failures)
        raise RuntimeError(first_process_text(rank, code))
