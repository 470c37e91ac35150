"""Runs a program with one process per rank, forked from this one, which has imported torch already.

So a run costs a fraction of a second, and every run has fresh processes. Nothing in this process may be
initialized or have threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import itertools
import json
import mmap
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import stopper
import torch
from faults import Fault
from outcome import Outcome, RankEnd
from performer import Performer, WrongResultError
from program import Do, Program

from horovod.common.exceptions import HorovodInternalError

_NUMBER = struct.Struct("<q")
_STACKS = signal.SIGUSR1
_LAST_WORDS_SECONDS = 2
_PR_SET_PDEATHSIG = 1
_FOREIGN = ("HOROVOD_", "OMPI_", "PMI_", "PMIX_", "SLURM_", "TORCHELASTIC_", "LOCAL_", "GROUP_", "MASTER_")
_run_numbers = itertools.count()


@dataclass(frozen=True)
class Patience:
    """How long a program may take."""

    stall_seconds: int = 5
    """The core then reports who is late for what."""
    stall_limit_seconds: int = 20
    """It then ends the job."""
    limit_seconds: float = 60
    """Ranks that are still there then show their stacks and are killed."""


@dataclass(frozen=True)
class _Job:
    program: Program
    folder: Path
    board: mmap.mmap
    pipe: int
    patience: Patience
    fault: Fault | None
    environment: dict[str, str]


def run_program(
    program: Program, folder: Path, patience: Patience | None = None, fault: Fault | None = None
) -> Outcome:
    """Run a program once; the folder is for files of the ranks."""
    patience = patience or Patience()
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        read_end, write_end = os.pipe()
        stack.callback(os.close, read_end)
        close_writer = stack.enter_context(contextlib.ExitStack())
        close_writer.callback(os.close, write_end)
        board = stack.enter_context(mmap.mmap(-1, _NUMBER.size * program.size))
        environment = stack.enter_context(_common_environment(program, folder, patience))
        job = _Job(program, folder, board, write_end, patience, fault, environment)
        processes = [_fork(partial(_rank_main, job, rank)) for rank in range(program.size)]
        helpers = []
        if any(action.do is Do.STOP for actions in program.actions for action in actions):
            helpers.append(_fork(partial(_serve, read_end, write_end, processes)))
        close_writer.close()
        try:
            _await_end(processes, patience)
        finally:
            # Ranks are reaped last: until then nobody else has their numbers.
            for process in [*processes, *helpers]:
                os.kill(process, signal.SIGKILL)
            for process in helpers:
                os.waitpid(process, 0)
            codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
        places = [_NUMBER.unpack_from(board, _NUMBER.size * rank)[0] for rank in range(program.size)]
        ends = [_end_of(job, rank, code, places[rank]) for rank, code in enumerate(codes)]
        return Outcome(tuple(ends))


def _fork(child: Callable[[], None]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # pages stay shared
    process = os.fork()
    if process == 0:
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            child()
        except BaseException:  # noqa: BLE001 - nothing may get back into the parent's code
            traceback.print_exc()
        finally:
            os._exit(70)
    gc.unfreeze()
    return process


def _serve(read_end: int, write_end: int, processes: list[int]) -> None:
    os.close(write_end)
    stopper.serve(read_end, processes)
    os._exit(0)


def _await_end(processes: list[int], patience: Patience) -> None:
    """Wait for all ranks; those that are not ready in time are asked for their stacks."""
    if _all_end(processes, time.monotonic() + patience.limit_seconds):
        return
    for process in processes:
        os.kill(process, signal.SIGCONT)
        os.kill(process, _STACKS)
    _all_end(processes, time.monotonic() + _LAST_WORDS_SECONDS)


def _all_end(processes: list[int], deadline: float) -> bool:
    poller = select.poll()
    descriptors = [os.pidfd_open(process) for process in processes]
    try:
        for descriptor in descriptors:
            poller.register(descriptor, select.POLLIN)
        left = set(descriptors)
        while left:
            for descriptor, _ in poller.poll(max(deadline - time.monotonic(), 0) * 1000):
                poller.unregister(descriptor)
                left.discard(descriptor)
            if left and time.monotonic() >= deadline:
                return False
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return True


# ---- environment of the ranks


@contextlib.contextmanager
def _common_environment(program: Program, folder: Path, patience: Patience) -> Iterator[dict[str, str]]:
    common = {
        **dict(program.settings),
        "HOROVOD_JOB_ID": f"random-{os.getpid()}-{next(_run_numbers)}",
        "HOROVOD_SIZE": str(program.size),
        "HOROVOD_DYNAMIC_PROCESS_SETS": "1",
        "HOROVOD_STALL_CHECK_TIME_SECONDS": str(patience.stall_seconds),
        "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": str(patience.stall_limit_seconds),
        "HOROVOD_GLOO_TIMEOUT_SECONDS": "60",
        # Programs are short: what is drawn is soon tried.
        "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE": "1",
        "HOROVOD_AUTOTUNE_WARMUP_SAMPLES": "0",
    }
    if tuning := common.get("HOROVOD_AUTOTUNE_PROFILE"):
        common["HOROVOD_AUTOTUNE_PROFILE"] = str(folder / "profile.txt")
        (folder / "profile.txt").write_text(tuning, encoding="utf-8")
    if len(program.hosts) == 1:
        yield common
        return
    key = folder / "key"
    key.unlink(missing_ok=True)
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(32))
    with socket.socket() as holder:
        # Bound but not listening: the port is kept from others, and rank 0 can listen on it.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield {
            **common,
            "HOROVOD_RENDEZVOUS_ADDR": "127.0.0.1",
            "HOROVOD_RENDEZVOUS_PORT": str(holder.getsockname()[1]),
            "HOROVOD_KEY_FILE": str(key),
        }


def _rank_environment(hosts: tuple[int, ...], rank: int) -> dict[str, str]:
    host = 0
    local_rank = rank
    while local_rank >= hosts[host]:
        local_rank -= hosts[host]
        host += 1
    peers = [at for at, count in enumerate(hosts) if count > local_rank]
    return {
        "HOROVOD_RANK": str(rank),
        "HOROVOD_LOCAL_RANK": str(local_rank),
        "HOROVOD_LOCAL_SIZE": str(hosts[host]),
        "HOROVOD_CROSS_RANK": str(peers.index(host)),
        "HOROVOD_CROSS_SIZE": str(len(peers)),
        "HOROVOD_HOSTNAME": f"host{host}",
    }


# ---- in the process of a rank


def _rank_main(job: _Job, rank: int) -> None:
    output = os.open(job.folder / f"rank{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # Those of the parent may be pytest's, which lead elsewhere.
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.chdir(job.folder)
    faulthandler.enable(file=2)
    faulthandler.register(_STACKS, file=2, all_threads=True)
    torch.set_num_threads(1)
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        del os.environ[name]
    os.environ.update(job.environment)
    os.environ.update(_rank_environment(job.program.hosts, rank))
    performer = Performer(
        job.program,
        rank,
        note_action=lambda place: _NUMBER.pack_into(job.board, _NUMBER.size * rank, place),
        stop=lambda after_ms, for_ms: stopper.ask(job.pipe, rank, after_ms, for_ms),
        fault=job.fault,
    )
    problem = None
    try:
        performer.run()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        problem = f"{type(error).__name__}: {error}"
        if not isinstance(error, (WrongResultError, HorovodInternalError)):
            traceback.print_exc()
    end = {
        "problem": problem,
        "at_seconds": time.monotonic(),
        "last_joined": performer.last_joined,
        "statistics": performer.statistics,
    }
    (job.folder / f"rank{rank}.json").write_text(json.dumps(end))
    os._exit(0 if problem is None else 1)


def _end_of(job: _Job, rank: int, code: int, place: int) -> RankEnd:
    output = (job.folder / f"rank{rank}.txt").read_text(errors="replace")
    report = job.folder / f"rank{rank}.json"
    if not report.exists():
        problem = "did not come to its end" if code == -signal.SIGKILL else f"died with code {code}"
        return RankEnd(problem, time.monotonic(), place, (), {}, output)
    raw = json.loads(report.read_text())
    report.unlink()
    joined = tuple(raw["last_joined"])
    return RankEnd(raw["problem"], raw["at_seconds"], place, joined, raw["statistics"], output)
