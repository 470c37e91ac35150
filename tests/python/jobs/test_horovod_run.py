"""horovod.run: a function on every rank, and the ways in which that can end."""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from job import LIMIT_SECONDS, Ended, clean_environment, run, write_script

# A rank's place without a framework.
PLACE = """
import horovod
from horovod.common.basics import HorovodBasics

def place(*extra, **more):
    hvd = HorovodBasics()
    hvd.init()
    found = (hvd.rank(), hvd.size(), hvd.local_rank())
    hvd.shutdown()
    return (*found, *extra, *sorted(more.items()))
"""


def run_text(folder: Path, text: str, **variables: str) -> Ended:
    return run([sys.executable, write_script(folder, text)], TMPDIR=str(folder), **variables)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("horovod-run-*")]


def test_results_come_by_rank(tmp_path: Path) -> None:
    job = run_text(tmp_path, PLACE + "print(horovod.run(place, ('a',), {'b': 1}, num_proc=3))\n")

    assert job.code == 0, job.output
    expected = [(rank, 3, rank, "a", ("b", 1)) for rank in range(3)]
    assert str(expected) in job.output
    assert leftovers(tmp_path) == []


def test_output_of_the_ranks_is_shown_also_in_a_replaced_stdout(tmp_path: Path) -> None:
    text = """
    import contextlib, io, horovod
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        horovod.run(lambda: print("50%\\r100% ä", flush=True), num_proc=1)
    assert shown.getvalue() == "[0]<stdout>:50%\\r[0]<stdout>:100% ä\\n", shown.getvalue()
    """
    job = run_text(tmp_path, text)

    assert job.code == 0, job.output


def test_an_exception_is_raised_with_rank_and_traceback(tmp_path: Path) -> None:
    text = """
    import os, horovod
    def deep():
        raise KeyError("missing thing")
    def fail():
        if os.environ["HOROVOD_RANK"] == "1":
            deep()
        import signal
        signal.pause()
    try:
        horovod.run(fail, num_proc=3)
    except RuntimeError as error:
        text = str(error)
        assert "exited with non-zero status: rank 1 on host" in text, text
        assert "raised KeyError: 'missing thing'" in text, text
        assert "in deep" in text, text
        assert isinstance(error.__cause__, KeyError), error.__cause__
        print("as expected")
    """
    job = run_text(tmp_path, text)

    assert job.code == 0, job.output
    assert "as expected" in job.output
    assert leftovers(tmp_path) == []


def test_an_internal_error_arrives_as_the_class_that_programs_catch(tmp_path: Path) -> None:
    text = """
    import horovod
    from horovod.common.exceptions import HorovodInternalError
    def fail():
        from horovod._core.errors import HorovodInternalError as Error
        raise Error("lost")
    try:
        horovod.run(fail, num_proc=1)
    except RuntimeError as error:
        assert isinstance(error.__cause__, HorovodInternalError), type(error.__cause__)
        print("as expected")
    """
    job = run_text(tmp_path, text)

    assert job.code == 0, job.output
    assert "as expected" in job.output


def test_the_killed_rank_is_named_and_not_the_one_that_missed_it(tmp_path: Path) -> None:
    text = """
    import os, signal, horovod
    def die():
        if os.environ["HOROVOD_RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        # Ends in an exception when the launcher asks for the end.
        def leave(*_):
            raise ConnectionError("lost rank 1")
        signal.signal(signal.SIGTERM, leave)
        signal.pause()
    try:
        horovod.run(die, num_proc=2)
    except RuntimeError as error:
        text = str(error)
        assert "rank 1 (pid" in text and "killed by signal 9" in text, text
        assert error.__cause__ is None
        print("as expected")
    """
    job = run_text(tmp_path, text)

    assert job.code == 0, job.output
    assert "as expected" in job.output


@pytest.mark.parametrize(
    ("end", "sign"),
    [
        ("sys.exit(0)", "rank 1 on host .* raised SystemExit: 0"),
        ("os._exit(0)", "Process name: 1\\n.*rank 1 .pid .* exited with code 0"),
        ("os.kill(os.getpid(), signal.SIGSTOP)", "Process name: 1\\n.*rank 1 .pid .* no sign of life"),
    ],
)
def test_the_rank_that_others_waited_for_is_named(tmp_path: Path, end: str, sign: str) -> None:
    text = f"""
    import os, re, signal, sys, horovod
    def leave():
        import torch
        import horovod.torch as hvd
        hvd.init()
        hvd.allreduce(torch.ones(1))
        if hvd.rank() == 1:
            {end}
        hvd.allreduce(torch.ones(1), name="never complete")
    try:
        horovod.run(leave, num_proc=3)
    except RuntimeError as error:
        assert re.search({sign!r}, str(error), re.DOTALL), error
        print("as expected")
    """
    job = run_text(tmp_path, text, HOROVOD_FROZEN_PEER_TIME_SECONDS="2")

    assert job.code == 0, job.output
    assert "as expected" in job.output


def test_leaving_without_a_result_is_an_error(tmp_path: Path) -> None:
    text = """
    import os, horovod
    try:
        horovod.run(lambda: os._exit(0), num_proc=1)
    except RuntimeError as error:
        print(error)
    """
    job = run_text(tmp_path, text)

    assert "rank 0 ended without a result" in job.output


def test_functions_of_modules_beside_the_program_are_found(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def answer():\n    return 42\n")
    text = """
    import os, horovod, beside
    os.chdir("/")
    print(horovod.run(beside.answer, num_proc=2))
    """
    job = run_text(tmp_path, text)

    assert "[42, 42]" in job.output


def test_workers_run_the_given_python(tmp_path: Path) -> None:
    wrapper = tmp_path / "my-python"
    wrapper.write_text(f'#!/bin/sh\nMARK=seen exec {sys.executable} "$@"\n')
    wrapper.chmod(stat.S_IRWXU)
    text = (
        f"import os, horovod\nprint(horovod.run(lambda: os.environ['MARK'], executable={str(wrapper)!r}))\n"
    )
    job = run_text(tmp_path, text)

    assert "['seen']" in job.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("hosts='a:1', hostfile='f'", "ValueError: give hosts or hostfile, not both"),
        ("join='here:4711'", "ValueError: join needs key_file, by which the hosts of the job know"),
        ("key_file='key'", "ValueError: key_file belongs to join='host:port', which is missing"),
        ("join='a:1', key_file='key', hosts='a:1'", "ValueError: give join or hosts, not both"),
        ("join='a:1', key_file='key', use_mpi=True", "ValueError: give join or use_mpi, not both"),
        ("join='here', key_file='key'", "ValueError: --join: expected HOST:PORT, for example gpu1:4711, got"),
        ("use_gloo=True, use_mpi=True", "ValueError: give use_gloo or use_mpi, not both"),
        (
            "num_proc=3, hosts='localhost:2'",
            "ValueError: -np 3 asks for more workers than",
        ),
        ("hosts='localhost'", "ValueError: -H: expected host:slots, got 'localhost'"),
    ],
)
def test_mistakes_are_said_before_anything_starts(tmp_path: Path, arguments: str, text: str) -> None:
    job = run_text(tmp_path, f"import horovod\nhorovod.run(print, ('started',), {arguments})\n")

    assert job.code == 1
    assert text in job.output
    assert "started" not in job.output.replace("('started',)", "")
    assert leftovers(tmp_path) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    job = run_text(tmp_path, "import horovod\nhorovod.run(print)\n", HOROVOD_RUN_DIRECTORY="/no/such")

    assert "ValueError: HOROVOD_RUN_DIRECTORY names '/no/such', which is not a folder" in job.output


def test_old_names_still_work_with_a_warning(tmp_path: Path) -> None:
    text = """
    import warnings, horovod
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        print(horovod.run(lambda: 7, np=2, network_interface="lo"))
    print(sorted((str(w.message), w.category.__name__, w.filename == __file__) for w in caught))
    """
    job = run_text(tmp_path, text)

    assert "[7, 7]" in job.output, job.output
    assert "('np is deprecated, use num_proc instead', 'DeprecationWarning', True)" in job.output
    assert "network_interface is deprecated, use network_interfaces" in job.output


def started(folder: Path, text: str) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Start a program whose ranks print their pids; return it and a descriptor of each rank."""
    process = subprocess.Popen(
        [sys.executable, write_script(folder, text)],
        stdout=subprocess.PIPE,
        bufsize=0,  # select() does not see what a buffer holds
        env=clean_environment(TMPDIR=str(folder)),
    )
    ranks = []
    for _ in range(2):
        ready, _, _ = select.select([process.stdout], [], [], LIMIT_SECONDS)
        assert ready, "the ranks did not start"
        ranks.append(os.pidfd_open(int(process.stdout.readline().split(b"pid ")[1])))
    return process, ranks


def assert_ended(ranks: list[int]) -> None:
    for rank in ranks:
        assert select.select([rank], [], [], LIMIT_SECONDS)[0], "a rank is still there"
        os.close(rank)


WAITING = """
import os, signal, horovod
def wait():
    print("pid", os.getpid(), flush=True)
    signal.pause()
try:
    horovod.run(wait, num_proc=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_interruption_ends_the_job_and_is_raised(tmp_path: Path) -> None:
    process, ranks = started(tmp_path, textwrap.dedent(WAITING))

    process.send_signal(signal.SIGINT)

    output, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert b"interrupted" in output
    assert_ended(ranks)
    assert leftovers(tmp_path) == []


def test_a_caller_that_is_killed_leaves_no_workers(tmp_path: Path) -> None:
    process, ranks = started(tmp_path, textwrap.dedent(WAITING))

    process.kill()

    assert_ended(ranks)
    process.communicate(timeout=LIMIT_SECONDS)
