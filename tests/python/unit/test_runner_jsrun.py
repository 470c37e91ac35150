"""js_run: what jsrun is asked to do, and what callers may replace."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from horovod.runner import _lsf_node
from horovod.runner import js_run as module
from horovod.runner.common.util.settings import Settings
from horovod.runner.js_run import generate_jsrun_rankfile, js_run


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node with 4 GPUs and 4 cores of 4 threads each."""
    for name in ("get_num_gpus", "get_num_cores", "get_num_threads"):
        monkeypatch.setattr(module.lsf.LSFUtils, name, lambda: 4)


def line_of(given: Settings, flags: list[str], **others: Any) -> mock.MagicMock:
    with (
        mock.patch.object(module, "is_jsrun_installed", return_value=True),
        mock.patch.object(module, "generate_jsrun_rankfile", return_value="/tmp/rankfile"),
        mock.patch.object(module, "_get_mpi_implementation_flags", return_value=(flags, [])),
        mock.patch.object(module.safe_shell_exec, "execute", return_value=0) as execute,
    ):
        js_run(given, None, {"a": "1"}, ["cmd", "two words"], **others)
    return execute


def test_the_line_carries_what_was_given() -> None:
    given = Settings(
        num_proc=4, hosts="a:2,b:2", extra_mpi_args=">extra<", output_filename=">out<", run_func_mode=True
    )

    execute = line_of(given, ["--flags"], stdout="out", stderr="err")

    line = (
        "jsrun --erf_input /tmp/rankfile --stdio_stderr >out< --stdio_stdout >out< "
        "--smpiargs '--flags >extra<' cmd 'two words'"
    )
    execute.assert_called_once_with(line, env={"a": "1"}, stdout="out", stderr="err")


def test_nothing_is_said_that_was_not_given() -> None:
    execute = line_of(Settings(num_proc=1, binding_args="-b", run_func_mode=True), [])

    assert execute.call_args.args == ("jsrun -b cmd 'two words'",)


def test_a_quote_in_the_arguments_stays_one() -> None:
    given = Settings(num_proc=1, binding_args="-b", extra_mpi_args="-x 'y'", run_func_mode=True)

    execute = line_of(given, [])

    assert """ --smpiargs '-x '"'"'y'"'"'' cmd""" in execute.call_args.args[0]


def test_a_failure_names_jsrun() -> None:
    given = Settings(num_proc=1, binding_args="-b", run_func_mode=True)
    with (
        mock.patch.object(module, "is_jsrun_installed", return_value=True),
        mock.patch.object(module, "_get_mpi_implementation_flags", return_value=([], [], None)),
        mock.patch.object(module.safe_shell_exec, "execute", return_value=3),
        pytest.raises(RuntimeError, match=r"^jsrun failed with exit code 3$"),
    ):
        js_run(given, None, {}, ["cmd"])


def test_a_machine_without_jsrun_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(RuntimeError, match="does not find the jsrun command"):
        js_run(Settings(num_proc=1), None, {}, ["cmd"])


@pytest.mark.usefixtures("node")
def test_ranks_share_the_processors_of_their_node(tmp_path: Path) -> None:
    given = Settings(num_proc=5, hosts="host1:4,host2:4,host3:4")

    path = generate_jsrun_rankfile(given, str(tmp_path / "ranks"))

    assert Path(path).read_text() == (
        "overlapping_rs: allow\n"
        "cpu_index_using: logical\n"
        "\n"
        "rank: 0: { hostname: host1; cpu: {0-3} ; gpu: * ; mem: * }\n"
        "rank: 1: { hostname: host1; cpu: {4-7} ; gpu: * ; mem: * }\n"
        "rank: 2: { hostname: host1; cpu: {8-11} ; gpu: * ; mem: * }\n"
        "rank: 3: { hostname: host1; cpu: {12-15} ; gpu: * ; mem: * }\n"
        "\n"
        "rank: 4: { hostname: host2; cpu: {0-3} ; gpu: * ; mem: * }\n"
    )


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("hosts", "text"), [("a:5", "a has 5 slots, but only 4 GPUs"), ("a:1,b:1", "only 2 slots")]
)
def test_hosts_that_do_not_fit_are_refused(hosts: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        generate_jsrun_rankfile(Settings(num_proc=5, hosts=hosts))


ANSWERS = {
    "csm_allocation_query -a 7": "---\nallocation_id: 7\ncompute_nodes:\n  - n1\n  - n2\nstate: running\n",
    "csm_node_attributes_query -n n1": "Record_1:\n  discovered_cores: 44\n  discovered_gpus: 6\n",
    "n1 'LANG=C lscpu'": "CPU(s):              176\nThread(s) per core:  4\n",
}


def test_the_cluster_manager_is_asked_for_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(command: str) -> tuple[str, int]:
        return next(text for end, text in ANSWERS.items() if command.endswith(end)), 0

    monkeypatch.setenv("CSM_ALLOCATION_ID", "7")
    monkeypatch.setattr(_lsf_node, "_first_node", lambda: "n1")
    monkeypatch.setattr(_lsf_node.tiny_shell_exec, "execute", answer)

    utils = module.lsf.LSFUtils
    assert (utils.get_num_cores(), utils.get_num_threads()) == (44, 4)
    assert utils.get_allocation_info() == {
        "allocation_id": "7",
        "compute_nodes": ["n1", "n2"],
        "state": "running",
    }


def test_a_cluster_manager_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lsf_node, "_first_node", lambda: "n1")

    with pytest.raises(RuntimeError, match=r"csm_node_attributes_query -n n1: code 127: .*not found"):
        _lsf_node.get_num_cores()
