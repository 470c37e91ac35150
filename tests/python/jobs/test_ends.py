"""However one rank ends, all ranks end, and the cause is on screen."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from job import LIMIT_SECONDS, clean_environment, horovodrun, run_job, write_script

START = """
import os, sys, signal, ctypes, time
import torch
import horovod.torch as hvd
hvd.init()
hvd.allreduce(torch.ones(1))
"""

WAIT_FOR_OTHERS = """
try:
    hvd.allreduce(torch.ones(1), name="never complete")
except hvd.HorovodInternalError as error:
    print(f"rank {hvd.rank()} saw: {error}", flush=True)
    raise
"""


def test_a_job_that_ends_well(tmp_path: Path) -> None:
    job = run_job(tmp_path, 2, START + "print('done', hvd.rank())")

    assert job.code == 0, job.output
    assert "done 0" in job.output
    assert "done 1" in job.output


def test_an_exception_on_one_rank(tmp_path: Path) -> None:
    job = run_job(
        tmp_path,
        3,
        START + "if hvd.rank() == 1:\n    raise RuntimeError('the cause of it all')\n" + WAIT_FOR_OTHERS,
    )

    assert job.code != 0
    assert "RuntimeError: the cause of it all" in job.output
    assert "rank 1" in job.output.splitlines()[-1]
    assert "exited with code 1" in job.output.splitlines()[-1]


def test_an_exception_with_operations_under_way(tmp_path: Path) -> None:
    job = run_job(
        tmp_path,
        2,
        START
        + "handles = [hvd.allreduce_async(torch.ones(100000), name=f'{hvd.rank()}.{i}') for i in range(20)]\n"
        + "if hvd.rank() == 0:\n    raise RuntimeError('the cause of it all')\n"
        + "[hvd.synchronize(h) for h in handles]",
    )

    assert job.code != 0
    assert "RuntimeError: the cause of it all" in job.output
    assert "rank 0" in job.output.splitlines()[-1]


@pytest.mark.parametrize(
    ("end", "sign"),
    [
        ("os._exit(7)", "code 7"),
        ("ctypes.string_at(0)", "signal 11"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
        ("os.abort()", "signal 6"),
    ],
)
def test_a_rank_that_dies(tmp_path: Path, end: str, sign: str) -> None:
    job = run_job(tmp_path, 2, START + f"if hvd.rank() == 1:\n    {end}\n" + WAIT_FOR_OTHERS)

    assert job.code != 0
    last = job.output.splitlines()[-1]
    assert "rank 1" in last
    assert sign in last


def test_a_rank_that_leaves_with_a_code(tmp_path: Path) -> None:
    job = run_job(tmp_path, 2, START + "if hvd.rank() == 1:\n    sys.exit(5)\n" + WAIT_FOR_OTHERS)

    assert job.code == 5
    assert "rank 0 saw: Horovod has been shut down" in job.output
    assert re.search(r"rank 1 \(.*failed first: exited with code 5 after", job.output.splitlines()[-1])


IN_VAIN = """
import os, sys
import horovod.torch as hvd
if os.environ["HOROVOD_RANK"] == "2":
    sys.exit(0)
try:
    hvd.init()
except hvd.HorovodInternalError as error:
    print(f"saw: {error}", flush=True)
"""


def test_ranks_that_wait_in_init_in_vain_all_see_an_error_of_the_job(tmp_path: Path) -> None:
    job = run_job(tmp_path, 3, IN_VAIN, HOROVOD_GLOO_TIMEOUT_SECONDS="2")

    assert job.code == 0, job.output
    assert job.output.count("saw: rendezvous: timed out waiting for rank 2 of 3") == 2, job.output


def test_a_rank_that_left_before_init_is_the_one_that_failed(tmp_path: Path) -> None:
    job = run_job(tmp_path, 3, IN_VAIN + "    raise\n", HOROVOD_GLOO_TIMEOUT_SECONDS="2")

    assert job.code == 1, job.output
    last = job.output.splitlines()[-1]
    assert re.search(r"rank 2 \(.*failed first: exited with code 0 .*, while rank [01] waited", last)


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)"])
def test_a_rank_that_leaves_early_with_code_0_is_the_one_that_failed(tmp_path: Path, end: str) -> None:
    job = run_job(tmp_path, 3, START + f"if hvd.rank() == 1:\n    {end}\n" + WAIT_FOR_OTHERS)

    assert job.code == 1
    last = job.output.splitlines()[-1]
    assert re.search(r"rank 1 \(.*failed first: exited with code 0 .*, while rank [02] waited", last)


def test_ranks_survive_a_peer_that_leaves_and_can_say_so(tmp_path: Path) -> None:
    job = run_job(
        tmp_path,
        3,
        START
        + "if hvd.rank() == 2:\n    os._exit(0)\n"
        + "try:\n    hvd.allreduce(torch.ones(1))\nexcept hvd.HorovodInternalError as error:\n"
        + "    print('caught:', error)\n    hvd.shutdown()\n    print('left in order', flush=True)\n",
    )

    assert job.output.count("caught:") == 2, job.output
    assert job.output.count("left in order") == 2
    assert job.code == 0


def test_a_frozen_peer(tmp_path: Path) -> None:
    job = run_job(
        tmp_path,
        2,
        START + "if hvd.rank() == 1:\n    os.kill(os.getpid(), signal.SIGSTOP)\n" + WAIT_FOR_OTHERS,
        HOROVOD_FROZEN_PEER_TIME_SECONDS="2",
    )

    assert job.code != 0
    assert "rank 0 saw: " in job.output
    last = job.output.splitlines()[-1]
    assert re.search(r"rank 1 \(.*failed first: gives no sign of life for .*\(rank 0 says\)", last)


def test_a_stalled_operation_fails_on_every_rank_and_shutdown_does_not_hang(tmp_path: Path) -> None:
    job = run_job(
        tmp_path,
        2,
        START
        + "try:\n    hvd.allreduce(torch.ones(1), name=f'only.{hvd.rank()}')\n"
        + "except hvd.HorovodInternalError as error:\n    print('stalled:', error)\nhvd.shutdown()\n",
        HOROVOD_STALL_CHECK_TIME_SECONDS="1",
        HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="2",
    )

    assert job.code == 0, job.output
    assert job.output.count("stalled: ") == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_all_ranks(tmp_path: Path, number: signal.Signals) -> None:
    text = START + (
        "print('pid', os.getpid(), flush=True)\n"
        "if hvd.rank():\n    time.sleep(600)\n"
        "hvd.allreduce(torch.ones(1))"
    )
    script = write_script(tmp_path, text)
    with subprocess.Popen(
        [horovodrun(), "-np", "2", sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=clean_environment(),
        start_new_session=True,
    ) as job:
        assert job.stdout is not None
        pids = []
        while len(pids) < 2:
            line = job.stdout.readline()
            assert line, "the job ended early"
            if "pid " in line:
                pids.append(int(line.split()[-1]))
        job.send_signal(number)
        job.communicate(timeout=LIMIT_SECONDS)

    assert job.returncode == 128 + number
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_keyboard_interrupt_of_one_rank_reaches_python(tmp_path: Path) -> None:
    job = run_job(
        tmp_path,
        2,
        START
        + "import threading\n"
        + "if hvd.rank() == 0:\n"
        + "    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        + "    handle = hvd.allreduce_async(torch.ones(1), name='late', op=hvd.Sum)\n"
        + "    try:\n        hvd.synchronize(handle)\n"
        + "    except KeyboardInterrupt:\n        print('interrupted', flush=True)\n"
        + "    hvd.barrier()\n"
        + "    print('result', hvd.synchronize(handle).item())\n"
        + "else:\n"
        + "    hvd.barrier()\n    hvd.allreduce(torch.ones(1), name='late', op=hvd.Sum)\n",
    )

    assert job.code == 0, job.output
    assert "interrupted" in job.output
    assert "result 2.0" in job.output


def test_a_hung_rank_shows_its_python_stack(tmp_path: Path) -> None:
    job = run_job(
        tmp_path,
        2,
        START
        + "def the_place_where_it_hangs():\n    time.sleep(600)\n"
        + "if hvd.rank() == 1:\n    the_place_where_it_hangs()\n"
        + WAIT_FOR_OTHERS,
        HOROVOD_STALL_CHECK_TIME_SECONDS="1",
        HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="3",
    )

    assert job.code != 0
    last = job.output.splitlines()[-1]
    assert re.search(r"rank 1 \(.*failed first: others waited for it until the stall limit", last)
    dump = [line for line in job.output.splitlines() if "the_place_where_it_hangs" in line]
    assert dump, job.output
    assert all(line.lstrip().startswith("[1]<stderr>") for line in dump)


def test_stacks_can_be_turned_off(tmp_path: Path) -> None:
    job = run_job(
        tmp_path,
        2,
        START
        + "def the_place_where_it_hangs():\n    time.sleep(600)\n"
        + "if hvd.rank() == 1:\n    the_place_where_it_hangs()\n"
        + WAIT_FOR_OTHERS,
        HOROVOD_STALL_CHECK_TIME_SECONDS="1",
        HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="3",
        HOROVOD_STALL_STACKS="0",
    )

    assert "the_place_where_it_hangs" not in job.output
