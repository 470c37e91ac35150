"""launch: which launcher a job gets, and what happens before it starts."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from horovod.runner import _HorovodArgs, launch, mpi_run
from horovod.runner._options import option_words
from horovod.runner.elastic import driver
from horovod.runner.util.cache import Cache

ANYTHING = (None, False, True)
NOT_BUILT = {
    "gloo": (
        "Gloo support has not been built.  If this is not expected, ensure CMake is installed "
        "and reinstall Horovod with HOROVOD_WITH_GLOO=1 to debug the build error."
    ),
    "mpi": (
        "MPI support has not been built.  If this is not expected, ensure MPI is installed "
        "and reinstall Horovod with HOROVOD_WITH_MPI=1 to debug the build error."
    ),
    "lsf": (
        "Horovod did not detect an LSF job.  The jsrun launcher can only be used in that environment. "
        "Please, pick a different launcher for other environments."
    ),
    "any": (
        "Neither MPI nor Gloo support has been built. Try reinstalling Horovod ensuring that "
        "either MPI is installed (MPI) or CMake is installed (Gloo)."
    ),
}


@pytest.fixture(autouse=True)
def _no_job_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("SLURM_", "LSB_", "OMPI_", "PMI")):
            monkeypatch.delenv(name)


def expected_choice(
    asked: tuple[bool | None, bool | None, bool | None], gloo: bool, mpi: bool, is_lsf: bool, jsrun: bool
) -> str:
    """The launcher, or the text of the error."""
    use_gloo, use_mpi, use_jsrun = asked
    if use_gloo:
        return "gloo" if gloo else NOT_BUILT["gloo"]
    if use_mpi:
        return "mpi" if mpi else NOT_BUILT["mpi"]
    if use_jsrun:
        return (NOT_BUILT["lsf"], "js")[is_lsf] if mpi else NOT_BUILT["mpi"]
    if mpi:
        return "js" if is_lsf and jsrun else "mpi"
    return "gloo" if gloo else NOT_BUILT["any"]


@pytest.mark.parametrize(("gloo", "mpi", "is_lsf", "jsrun"), list(itertools.product((False, True), repeat=4)))
def test_the_options_and_what_is_there_choose_the_launcher(
    gloo: bool, mpi: bool, is_lsf: bool, jsrun: bool
) -> None:
    with (
        mock.patch.object(launch, "gloo_built", return_value=gloo),
        mock.patch.object(launch, "mpi_built", return_value=mpi),
        mock.patch.object(launch.lsf.LSFUtils, "using_lsf", return_value=is_lsf),
        mock.patch.object(launch, "is_jsrun_installed", return_value=jsrun),
    ):
        for asked in itertools.product(ANYTHING, repeat=3):
            called: list[str] = []

            def note(name: str, calls: list[str] = called) -> Any:
                return lambda: calls.append(name)

            use_gloo, use_mpi, use_jsrun = asked
            try:
                launch.run_controller(
                    use_gloo, note("gloo"), use_mpi, note("mpi"), use_jsrun, note("js"), verbosity=2
                )
            except ValueError as error:
                called.append(str(error))

            assert called == [expected_choice(asked, gloo, mpi, is_lsf, jsrun)]


def test_whether_mpi_is_left_out_is_known_beforehand() -> None:
    for mpi in (False, True):
        with mock.patch.object(launch, "mpi_built", return_value=mpi):
            assert launch.is_gloo_used() != mpi
            assert launch.is_gloo_used(use_gloo=True)
            assert not launch.is_gloo_used(use_mpi=True)
            assert not launch.is_gloo_used(use_jsrun=True)


def job(**options: Any) -> _HorovodArgs:
    args = _HorovodArgs()
    for name, value in options.items():
        setattr(args, name, value)
    return args


@pytest.fixture
def controller() -> Iterator[mock.MagicMock]:
    """What would start a job."""
    with mock.patch.object(launch, "run_controller") as replaced:
        yield replaced


def test_local_jobs_find_their_interface(
    controller: mock.MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert launch._run(job(num_proc=4, hosts="localhost:2,127.0.0.1:2", verbose=2, use_mpi=True)) is None

    controller.assert_called_once()
    use_gloo, _, use_mpi, _, use_jsrun, _, verbosity = controller.call_args.args
    assert (use_gloo, use_mpi, use_jsrun, verbosity) == (None, True, None, 2)
    assert capsys.readouterr().out.splitlines() == [
        "Remote host found: ",
        "All hosts are local, finding the interfaces with address 127.0.0.1",
        "Local interface found lo",
    ]


def test_interfaces_that_are_not_local_are_refused(controller: mock.MagicMock) -> None:
    with pytest.raises(ValueError, match="no-such-nic"):
        launch._run(job(nics={"no-such-nic"}))

    controller.assert_not_called()


def test_remote_hosts_are_tried_first(
    controller: mock.MagicMock,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "hosts").write_text("localhost slots=2\n127.0.0.1 slots=2\n")
    args = job(num_proc=4, hostfile=str(tmp_path / "hosts"), verbose=2)
    monkeypatch.setattr(launch.network, "filter_local_addresses", lambda names: names[1:])

    for way in ("true", "false"):
        monkeypatch.setenv("HOROVOD_SSH_COMMAND", way)
        if way == "true":
            launch._run(args)
        else:
            with pytest.raises(RuntimeError, match=r"could not connect to some hosts via ssh: 127\.0\.0\.1"):
                launch._run(args)

    controller.assert_called_once()
    assert capsys.readouterr().out.splitlines() == [
        "Remote host found: 127.0.0.1",
        "Checking ssh on all remote hosts.",
        "SSH was successful into all the remote hosts.",
        "Remote host found: 127.0.0.1",
        "Checking ssh on all remote hosts.",
        "ssh not successful for host 127.0.0.1:",
        "",
    ]


def test_hosts_of_lsf_need_no_ssh(controller: mock.MagicMock, monkeypatch: pytest.MonkeyPatch) -> None:
    utils = launch.lsf.LSFUtils
    monkeypatch.setattr(utils, "using_lsf", lambda: True)
    monkeypatch.setattr(utils, "get_compute_hosts", lambda: ["host1", "host2"])
    monkeypatch.setattr(utils, "get_num_gpus", lambda: 2)
    asked = mock.Mock(return_value=["host1", "host2"])
    monkeypatch.setattr(launch.network, "filter_local_addresses", asked)

    launch._run(job(num_proc=None))

    asked.assert_called_once_with(["host1", "host2"])
    controller.assert_called_once()


def test_ssh_is_tried_again_and_its_answer_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    way = tmp_path / "way"
    way.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\necho no such key >&2\nexit 255\n')
    way.chmod(0o700)
    monkeypatch.setenv("HOROVOD_SSH_COMMAND", str(way))

    assert not launch._check_all_hosts_ssh_successful(["localhost"], fn_cache=None)

    assert (tmp_path / "asked").read_text() == "localhost true\n" * 5
    assert capsys.readouterr().out == "ssh not successful for host localhost:\nno such key\n"


def test_success_of_ssh_is_remembered_in_a_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache = Cache(str(tmp_path), 60, "same")
    monkeypatch.setenv("HOROVOD_SSH_COMMAND", "true")
    assert launch._check_all_hosts_ssh_successful(["a"], fn_cache=cache)

    monkeypatch.setenv("HOROVOD_SSH_COMMAND", "false")

    assert launch._check_all_hosts_ssh_successful(["a"], fn_cache=cache)
    assert not launch._check_all_hosts_ssh_successful(["b"], fn_cache=cache)


def test_a_command_under_mpi_is_executed_with_the_options_as_variables() -> None:
    with (
        mock.patch.object(mpi_run, "_get_mpi_implementation_flags", return_value=([], [], None)),
        mock.patch.object(mpi_run.os, "execve") as execve,
    ):
        assert launch._run(job(num_proc=2, command=["cmd"], use_mpi=True, cycle_time_ms=7.0)) is None

    program, words, environment = execve.call_args.args
    assert (program, words[:2]) == ("/bin/sh", ["/bin/sh", "-c"])
    assert words[2].startswith("mpirun --allow-run-as-root --tag-output -np 2 -H localhost:2 ")
    assert re.search(r"-x HOROVOD_CYCLE_TIME .*cmd$", words[2])
    assert environment["HOROVOD_CYCLE_TIME"] == "7.0"


@pytest.mark.parametrize(
    ("variable", "option", "expected"),
    [(None, None, 7), (None, 20, 20), ("30", None, None), ("30", 20, 20)],
)
def test_an_elastic_job_follows_the_rules_of_the_original(
    variable: str | None, option: int | None, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "ELASTIC_TIMEOUT_SECS", 7)
    monkeypatch.setattr(driver, "DISCOVER_HOSTS_FREQUENCY_SECS", 0.25)
    monkeypatch.delenv("HOROVOD_ELASTIC_TIMEOUT", raising=False)
    if variable is not None:
        monkeypatch.setenv("HOROVOD_ELASTIC_TIMEOUT", variable)
    words = ["-np", "1", "--min-np", "1", *([] if option is None else ["--elastic-timeout", str(option)])]
    args = launch.parse_args([*words, "true"])

    with mock.patch.object(launch, "_run_as_planned") as run:
        launch._run_elastic(args)

    planned, environment = run.call_args.args
    assert environment["HOROVOD_ELASTIC_DISCOVERY_SECONDS"] == "0.25"
    assert (planned.whole_hosts, planned.elastic_timeout) == (True, expected)
    assert "--whole-hosts" in option_words(planned)


def test_a_job_that_cannot_be_placed_is_refused_when_it_is_run() -> None:
    with pytest.raises(ValueError, match="-np 4 asks for more workers than the hosts of -H have slots"):
        launch._run(launch.parse_args(["-np", "4", "-H", "localhost:2", "--gloo", "true"]))
    with pytest.raises(FileNotFoundError):
        launch._run(launch.parse_args(["-np", "1", "--hostfile", "/no/such/file", "--gloo", "true"]))


def test_a_job_without_mpi_runs_and_fails_as_it_does() -> None:
    assert launch._run(job(num_proc=2, command=["true"], use_gloo=True)) is None
    assert launch._run(job(num_proc=2, run_func=lambda: 5, use_gloo=True)) == [5, 5]

    with pytest.raises(RuntimeError) as raised:
        launch._run(job(num_proc=1, command=["sh", "-c", "exit 3"], use_gloo=True))

    assert re.match(
        "Horovod detected that one or more processes exited with non-zero status, .*\n"
        "Process name: 0\nExit code: 3\n",
        str(raised.value),
    )


def test_a_command_line_is_run_by_a_child_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    elastic = ["-np", "1", "--min-np", "1", "--host-discovery-script", "echo localhost:1"]
    launch.run_commandline(["-np", "2", "true"])
    launch.run_commandline([*elastic, "true"])
    monkeypatch.setattr("sys.argv", ["horovodrun", "-np", "1", "sh", "-c", "exit 3"])

    for run in (launch.run_commandline, lambda: launch.run_commandline([*elastic, "sh", "-c", "exit 3"])):
        with pytest.raises(RuntimeError, match="one or more processes exited with non-zero status"):
            run()
