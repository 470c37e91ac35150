"""horovod.run over several hosts, and python -m horovod.runner.launch."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from job import Ended, run, write_script

# A host that is none of this machine's names, reached by a command that takes the place of ssh: the
# real agent runs behind it.
REMOTE = "host-of-the-test.invalid"

PROGRAM = f"""
import os, horovod
def place():
    return int(os.environ["HOROVOD_RANK"]), os.environ["HOROVOD_HOSTNAME"]
found = horovod.run(place, num_proc=3, hosts="localhost:1,{REMOTE}:2")
assert [rank for rank, _ in found] == [0, 1, 2], found
assert [host == "{REMOTE}" for _, host in found] == [False, True, True], found
print("as expected")
"""


def shell(folder: Path, text: str) -> str:
    path = folder / "shell"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(stat.S_IRWXU)
    return str(path)


def run_in(folder: Path, text: str, **variables: str) -> Ended:
    script = write_script(folder, f"import os\nos.chdir({str(folder)!r})\n{text}")
    return run([sys.executable, script], **variables)


def test_a_folder_that_all_hosts_see_carries_the_function(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()

    job = run_in(
        tmp_path,
        PROGRAM,
        HOROVOD_SSH_COMMAND=shell(tmp_path, 'exec sh -c "$2"'),
        HOROVOD_RUN_DIRECTORY=str(shared),
    )

    assert job.code == 0, job.output
    assert "as expected" in job.output
    assert list(shared.iterdir()) == []


def can_hide_folders() -> bool:
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        return False
    return subprocess.run([unshare, "--mount", "true"], capture_output=True, check=False).returncode == 0


needs_hiding = pytest.mark.skipif(not can_hide_folders(), reason="mount namespaces are not permitted here")


SHARES_NOTHING = f"""
import os, horovod
def place(bad):
    rank = int(os.environ["HOROVOD_RANK"])
    if rank == bad:
        raise ValueError(f"of rank {{rank}}")
    return rank, os.environ["HOROVOD_RUN_FOLDER"], b"x" * 3_000_000
hosts = "localhost:1,{REMOTE}:2"
found = horovod.run(place, (-1,), num_proc=3, hosts=hosts)
assert [rank for rank, _, _ in found] == [0, 1, 2], found
assert all(len(data) == 3_000_000 for _, _, data in found)
folders = [folder for _, folder, _ in found]
assert folders[0] != folders[1] == folders[2], folders
try:
    horovod.run(place, (2,), num_proc=3, hosts=hosts)
except RuntimeError as error:
    assert "rank 2 on host {REMOTE} raised ValueError: of rank 2" in str(error), error
    assert isinstance(error.__cause__, ValueError)
    print("as expected")
"""


@needs_hiding
def test_hosts_that_share_no_folder_get_the_function_and_give_results_back(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    # The other host has an empty folder there.
    blind = shell(
        tmp_path, f"""exec unshare --mount sh -c 'mount -t tmpfs none {own} && exec sh -c "$0"' "$2" """
    )

    job = run_in(tmp_path, SHARES_NOTHING, HOROVOD_SSH_COMMAND=blind, TMPDIR=str(own))

    assert job.code == 0, job.output
    assert "as expected" in job.output
    assert list(own.iterdir()) == []


def test_nothing_is_left_on_a_host_whose_ranks_have_gone(tmp_path: Path) -> None:
    job = run_in(
        tmp_path,
        SHARES_NOTHING,
        HOROVOD_SSH_COMMAND=shell(tmp_path, 'exec sh -c "$2"'),
        TMPDIR=str(tmp_path),
    )

    assert job.code == 0, job.output
    assert list(tmp_path.glob("horovod-run-*")) == []


@needs_hiding
def test_a_shared_folder_that_a_host_does_not_see_is_named(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    blind = shell(
        tmp_path, f"""exec unshare --mount sh -c 'mount -t tmpfs none {hidden} && exec sh -c "$0"' "$2" """
    )

    job = run_in(tmp_path, PROGRAM, HOROVOD_SSH_COMMAND=blind, HOROVOD_RUN_DIRECTORY=str(hidden))

    assert job.code == 1, job.output
    assert f"on host {REMOTE} does not see the function" in job.output
    assert "HOROVOD_RUN_DIRECTORY names one that they share" in job.output
    assert list(hidden.iterdir()) == []


def test_the_module_is_the_command(tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "horovod.runner.launch"]
    script = write_script(
        tmp_path,
        """
        import os, sys
        print("rank", os.environ["HOROVOD_RANK"], sys.argv[1:])
        """,
    )
    job = run([*launch, "-np", "2", sys.executable, script, "--its-own"])

    assert job.code == 0, job.output
    assert "[1]<stdout>:rank 1 ['--its-own']" in job.output
    assert run([*launch, "-np", "1", "sh", "-c", "exit 7"]).code == 7
    # Python itself ignores SIGPIPE; what it starts must not.
    pipe = run([*launch, "-np", "1", "sh", "-c", "grep SigIgn /proc/self/status"])
    assert int(pipe.output.split("SigIgn:")[1].split()[0], 16) & 1 << 12 == 0, pipe.output


def test_a_job_from_parsed_arguments_fails_with_the_launchers_words(tmp_path: Path) -> None:
    text = """
    from horovod.runner import launch
    launch._run(launch.parse_args(["-np", "2", "--gloo", "true"]))
    try:
        launch._run(launch.parse_args(["-np", "2", "--gloo", "sh", "-c", "exit $HOROVOD_RANK"]))
    except RuntimeError as error:
        assert {"Process name: 1", "Exit code: 1"} <= set(str(error).splitlines()), error
        assert "rank 1 (pid" in str(error), error
        print("as expected")
    args = launch.parse_args(["-np", "2", "--gloo"])
    args.run_func = lambda: 5
    assert launch._run(args) == [5, 5]
    """
    job = run([sys.executable, write_script(tmp_path, text)])

    assert job.code == 0, job.output
    assert "as expected" in job.output


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed")
def test_mpirun_starts_the_function_too(tmp_path: Path) -> None:
    text = """
    import horovod
    from horovod.runner.common.util.env import get_env_rank_and_size
    def place(bad):
        if bad:
            raise ValueError("under MPI")
        return get_env_rank_and_size()
    print(horovod.run(place, (False,), num_proc=2, use_mpi=True))
    try:
        horovod.run(place, (True,), num_proc=1, use_mpi=True)
    except RuntimeError as error:
        assert str(error).startswith("mpirun failed with exit code 1: rank 0 on host"), error
        assert "ValueError: under MPI" in str(error), error
        print("as expected")
    """
    job = run([sys.executable, write_script(tmp_path, text)])

    assert job.code == 0, job.output
    assert "[(0, 2), (1, 2)]" in job.output
    assert "as expected" in job.output


def test_settings_start_a_command(tmp_path: Path) -> None:
    text = """
    import os
    from horovod.runner.common.util.settings import Settings
    from horovod.runner.gloo_run import gloo_run
    settings = Settings(num_proc=2, hosts="localhost:2")
    command = ["sh", "-c", "echo $WORD $HOROVOD_RANK $HOROVOD_GLOO_IFACE"]
    gloo_run(settings, {"lo"}, {"WORD": "hello"}, None, command)
    try:
        gloo_run(settings, None, os.environ, None, ["sh", "-c", "exit 3"])
    except RuntimeError as error:
        assert str(error).startswith("Horovod detected that one or more processes exited with"), error
        assert "Exit code: 3" in str(error).splitlines(), error
        print("as expected")
    """
    job = run([sys.executable, write_script(tmp_path, text)])

    assert job.code == 0, job.output
    assert "[1]<stdout>:hello 1 lo" in job.output
    assert "as expected" in job.output
