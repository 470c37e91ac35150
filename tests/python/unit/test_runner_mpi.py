"""mpi_run: what mpirun is asked to do, and what callers may replace."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from horovod.runner import mpi_run as module
from horovod.runner._failure import failure_text
from horovod.runner._job import Ended
from horovod.runner._program import plan
from horovod.runner.common.util.settings import Settings
from horovod.runner.gloo_run import gloo_run
from horovod.runner.mpi_run import mpi_run

OPEN = (["--its-flags"], ["--its-binding"], None)


def settings(**others: Any) -> Settings:
    return Settings(**{"num_proc": 2, "hosts": "localhost:2", "run_func_mode": True, **others})


def line_of(
    given: Settings,
    answer: tuple[Any, Any, Any] = OPEN,
    nics: Any = None,
    env: dict[str, str] | None = None,
    command: tuple[str, ...] = ("cmd",),
) -> str:
    """What the shell gets."""
    with (
        mock.patch.object(module, "_get_mpi_implementation_flags", return_value=answer),
        mock.patch.object(module.safe_shell_exec, "execute", return_value=0) as execute,
    ):
        mpi_run(given, nics, env or {}, command)
    line: str = execute.call_args.args[0]
    return line


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            "mpirun (Open MPI) 4.1.4",
            (["-mca pml ob1", "-mca btl ^openib"], ["-bind-to none", "-map-by slot"], "OpenMPI"),
        ),
        (
            "mpirun (Open MPI) 5.0.3",
            (["--mca pml ob1", "--mca btl ^openib"], ["--bind-to none", "--map-by slot"], "OpenMPI"),
        ),
        (
            "IBM Spectrum MPI 10.3",
            (["-tcp"], ["-bind-to socket", "-map-by socket", "-rank-by core"], "SpectrumMPI"),
        ),
        ("HYDRA build details:", ([], ["-bind-to none", "-map-by slot"], "MPICH")),
        ("Intel(R) MPI Library 2021", ([], [], "IntelMPI")),
        ("something else", (None, None, None)),
    ],
)
def test_every_mpirun_has_flags_of_its_own(version: str, expected: tuple[Any, Any, Any]) -> None:
    with mock.patch.object(module.tiny_shell_exec, "execute", return_value=(version, 0)):
        assert module._get_mpi_implementation_flags(True) == expected
        assert module.is_intel_mpi() == module.is_impi() == (expected[2] == "IntelMPI")


def test_without_mpirun_there_are_no_flags_and_no_job() -> None:
    with mock.patch.object(module.tiny_shell_exec, "execute", return_value=None):
        assert module._get_mpi_implementation_flags(False) == (None, None, None)
        with pytest.raises(Exception, match=r"^horovod does not find an installed MPI\."):
            mpi_run(settings(), None, {}, ["cmd"])


def test_parts_that_are_absent_leave_their_space() -> None:
    expected = (
        "mpirun --allow-run-as-root --tag-output -np 2 -H localhost:2 --its-binding --its-flags       cmd"
    )

    assert line_of(settings()) == expected


def test_the_line_carries_what_was_given() -> None:
    given = settings(
        ssh_port=1022,
        ssh_identity_file="key",
        extra_mpi_args=">extra<",
        binding_args=">binding<",
        output_filename=">output<",
        prefix_output_with_timestamp=True,
    )
    env = {"b": "2", "a": "1", "OLDPWD": "/"}

    line = line_of(given, nics=["eth1", "eth0"], env=env, command=("cmd", "two words"))

    assert line == (
        "mpirun --allow-run-as-root --tag-output -np 2 -H localhost:2 >binding< --its-flags "
        '-mca plm_rsh_args "-p 1022 -i key" '
        "-mca btl_tcp_if_include eth0,eth1 -x NCCL_SOCKET_IFNAME=eth0,eth1 "
        "--output-filename >output< --timestamp-output -x a -x b >extra< cmd 'two words'"
    )


def test_hosts_interfaces_and_names_are_not_read_by_the_shell() -> None:
    env = {"GOOD": "1", "A;touch x": "2", "ProgramFiles(x86)": "3"}

    line = line_of(settings(hosts="a;touch x:2", ssh_identity_file="$(touch)"), nics=["eth0`id`"], env=env)

    assert "-H 'a;touch x:2' " in line
    assert "-mca plm_rsh_args '-i $(touch)' " in line
    assert "-mca btl_tcp_if_include 'eth0`id`' -x NCCL_SOCKET_IFNAME='eth0`id`' " in line
    assert " -x GOOD " in line
    assert "touch x=" not in line
    assert "x86" not in line


def test_many_hosts_are_reached_at_once() -> None:
    hosts = ",".join(["localhost:1"] * module._LARGE_CLUSTER_THRESHOLD)

    line = line_of(settings(hosts=hosts))

    assert " --its-flags -mca plm_rsh_no_tree_spawn true -mca plm_rsh_num_concurrent 64       cmd" in line


def test_version_five_gets_flags_that_it_knows() -> None:
    five = (["--mca pml ob1"], [], "OpenMPI")

    line = line_of(settings(ssh_port=22), five, nics=["lo"])

    assert '--mca pml ob1 --mca plm_ssh_args "-p 22" --mca btl_tcp_if_include lo -x NCCL' in line


def test_the_family_of_mpich_has_words_of_its_own() -> None:
    given = settings(hosts="a:1,b:1", ssh_port=22, output_filename="out")

    intel = line_of(given, ([], [], "IntelMPI"), nics={"lo"}, env={"a": "1"})
    mpich = line_of(given, ([], ["-bind-to none"], "MPICH"))

    assert intel == (
        'mpirun -l -np 2 -ppn 1 -hosts a,b   -bootstrap=ssh -bootstrap-exec-args "-p 22" '
        "-iface lo -genv NCCL_SOCKET_IFNAME=lo -outfile-pattern out   cmd"
    )
    assert mpich.startswith('HYDRA_LAUNCHER_EXTRA_ARGS="-p 22" mpirun -l -np 2 -ppn 1 -hosts a,b -bind-to')
    with pytest.raises(ValueError, match="same number of slots"):
        line_of(settings(hosts="a:1,b:2"), ([], [], "MPICH"))
    with pytest.raises(ValueError, match="one network interface"):
        line_of(given, ([], [], "IntelMPI"), nics=["eth0", "eth1"])


def test_a_function_runs_in_a_shell_with_the_streams_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setenv("PYTHONPATH", "of this process")
    env = {"PYTHONPATH": "given"}

    with (
        mock.patch.object(module, "_get_mpi_implementation_flags", return_value=OPEN) as flags,
        mock.patch.object(module.safe_shell_exec, "execute", return_value=0) as execute,
    ):
        mpi_run(settings(), None, env, ["cmd"], stdout="out", stderr="err")

    flags.assert_called_once_with(None, env={"PYTHONPATH": "given"})
    environment = {"PATH": "/bin", "PYTHONPATH": "given"}
    execute.assert_called_once_with(mock.ANY, env=environment, stdout="out", stderr="err")
    assert "-x PATH" not in execute.call_args.args[0]


def test_a_failure_says_the_code_alone() -> None:
    with (
        mock.patch.object(module, "_get_mpi_implementation_flags", return_value=OPEN),
        mock.patch.object(module.safe_shell_exec, "execute", return_value=3),
        pytest.raises(RuntimeError, match=r"^mpirun failed with exit code 3$"),
    ):
        mpi_run(settings(), None, {}, ["cmd"])


def test_a_command_takes_the_place_of_this_process() -> None:
    with (
        mock.patch.object(module, "_get_mpi_implementation_flags", return_value=OPEN),
        mock.patch.object(module.safe_shell_exec, "execute") as execute,
        mock.patch.object(module.os, "execve") as execve,
    ):
        mpi_run(settings(run_func_mode=False), None, {"a": "1"}, ["cmd"])

    program, words, environment = execve.call_args.args
    assert (program, words[:2]) == ("/bin/sh", ["/bin/sh", "-c"])
    assert words[2].startswith("mpirun --allow-run-as-root")
    assert environment["a"] == "1"
    execute.assert_not_called()


def test_the_environment_of_this_process_is_refused() -> None:
    with pytest.raises(Exception, match=r"^env argument must be a dict, not <class 'os\._Environ'>: "):
        mpi_run(settings(), None, os.environ, ["cmd"])  # type: ignore[arg-type]


def test_a_real_mpirun_runs_the_command(tmp_path: Path) -> None:
    if not module.mpi_available():
        pytest.skip("no mpirun")
    command = ["sh", "-c", f"echo $WORD > {tmp_path}/$OMPI_COMM_WORLD_RANK$PMI_RANK"]

    mpi_run(settings(), None, {"WORD": "hello"}, command)

    assert [(tmp_path / rank).read_text() for rank in "01"] == ["hello\n", "hello\n"]
    with pytest.raises(RuntimeError, match=r"^mpirun failed with exit code 3$"):
        mpi_run(settings(), None, {}, ["sh", "-c", "exit 3"])


def test_a_failed_job_is_named_first_however_much_it_said() -> None:
    long = "echo " + "x" * 200 + " >&2;"

    with pytest.raises(RuntimeError) as raised:
        gloo_run(settings(), None, os.environ, None, ["sh", "-c", long * 100 + "exit 3"])

    lines = str(raised.value).splitlines()
    assert lines[0].startswith("Horovod detected that one or more processes exited with non-zero status")
    assert lines[1] in {"Process name: 0", "Process name: 1"}
    assert lines[2] == "Exit code: 3"


@pytest.mark.parametrize(
    ("launcher", "first"),
    [
        ("mpirun", "mpirun failed with exit code 4"),
        (
            "horovodrun",
            "Horovod detected that one or more processes exited with non-zero status: horovodrun ended",
        ),
    ],
)
def test_the_launcher_that_failed_is_named(launcher: str, first: str) -> None:
    assert failure_text(Ended(4, "horovodrun: why\n"), launcher).startswith(first)
    assert failure_text(Ended(4, "horovodrun: why\n"), launcher).endswith("\nwhy")


@pytest.mark.parametrize(
    "version",
    [
        "mpirun (Open MPI) 4.1.4",
        "mpirun (Open MPI) 5.0.3",
        "IBM Spectrum MPI 10.3",
        "HYDRA build details:",
        "Intel(R) MPI Library 2021",
    ],
)
@pytest.mark.parametrize("hosts", ["a:1,b:1", ",".join(["a:1", "b:1"] * 32), "a:1,a:1"])
def test_the_launcher_composes_the_same_line(version: str, hosts: str, tmp_path: Path) -> None:
    """Two programs compose it, as callers replace parts of one: it must not come to differ."""
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(f"#!/bin/sh\necho '{version}'\n", encoding="utf-8")
    mpirun.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    words = ["--mpi", "--num-proc=2", f"--hosts={hosts}", "--ssh-port=22", "--ssh-identity-file=id"]
    words += ["--network-interfaces=eth0", "--output-filename=logs", "--mpi-args=-x MORE"]

    native = plan([*words, "python", "a b"], environment=env)["command_line"]

    given = settings(
        hosts=hosts,
        ssh_port=22,
        ssh_identity_file="id",
        nics={"eth0"},
        output_filename="logs",
        extra_mpi_args="-x MORE",
    )
    flags = module._get_mpi_implementation_flags(tcp_flag=None, env=env)
    ours = line_of(given, flags, env=env, command=("python", "a b"))
    # What the launcher itself adds for the workers.
    added = r" -x (HOROVOD_GLOO_IFACE|HOROVOD_JOB_ID|NCCL_SOCKET_IFNAME(?!=)|PYTHONUNBUFFERED)\b"
    assert ours == re.sub(added, "", native)
