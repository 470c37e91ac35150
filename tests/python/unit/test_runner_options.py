"""Options in Python mean what they mean on the command line."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from horovod.runner import _HorovodArgs
from horovod.runner._options import TUNABLES, option_words, parsed_options
from horovod.runner._program import find_program, plan
from horovod.runner.common.util import config_parser
from horovod.runner.common.util.settings import Settings
from horovod.runner.js_run import generate_jsrun_rankfile
from horovod.runner.launch import parse_args

EVERYTHING = shlex.split(
    "-np 3 -H localhost:4 --start-timeout 7 --network-interfaces lo --output-filename logs --verbose "
    "--disable-cache -prefix-timestamp -p 2222 -i key --gloo --mpi-args=--x --binding-args=-b --tcp "
    "--fusion-threshold-mb 10 --cycle-time-ms 20 --cache-capacity 512 --hierarchical-allreduce "
    "--no-hierarchical-allgather --torus-allreduce --autotune --autotune-log-file a.csv "
    "--autotune-profile p.txt --autotune-warmup-samples 1 --autotune-steps-per-sample 2 "
    "--autotune-bayes-opt-max-samples 3 --autotune-gaussian-process-noise 0.5 "
    "--timeline-filename t.json --timeline-mark-cycles --no-stall-check --stall-check-warning-time-seconds 5 "
    "--stall-check-shutdown-time-seconds 6 "
    "--mpi-threads-disable --num-nccl-streams 2 --thread-affinity 1 --gloo-timeout-seconds 60 "
    "--log-level INFO --log-without-timestamp --min-np 1 --max-np 4 --slots-per-host 2 "
    "--elastic-timeout 100 --reset-limit 3 --blacklist-cooldown-range 2 9"
)


def parsed(*words: str) -> Any:
    return SimpleNamespace(**parsed_options(plan(["-np", "1", *words])))


def test_every_option_survives_the_way_to_python_and_back() -> None:
    first = parsed(*EVERYTHING, "python", "-u", "train.py")

    second = parsed(*option_words(first), "--", *first.command)

    assert vars(second) == vars(first)
    absent = {name for name in TUNABLES if getattr(first, name) is None}
    assert absent == set()
    assert (first.num_proc, first.fusion_threshold_mb, first.cycle_time_ms) == (3, 10, 20.0)
    assert (first.nics, first.cooldown_range, first.max_num_proc) == ({"lo"}, [2, 9], 4)
    assert first.command == ["python", "-u", "train.py"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [([], None), (["--log-with-timestamp"], True), (["--log-without-timestamp"], False)],
)
def test_whether_the_log_has_times_is_said_positively(words: list[str], expected: bool | None) -> None:
    args = parsed(*words, "true")

    assert args.log_with_timestamp is expected
    assert option_words(args) == ["--num-proc=1", *words]
    assert not hasattr(args, "log_hide_timestamp")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--network-interface", "lo,eth0"], "--network-interface takes one interface"),
        (["--log-hide-timestamp"], "--log-hide-timestamp is obsolete: use --log-without-timestamp"),
    ],
)
def test_words_that_are_obsolete_warn(words: list[str], text: str) -> None:
    with pytest.warns(DeprecationWarning, match=text):
        parsed(*words, "true")


def test_arguments_of_the_process_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["horovodrun", "-np", "2", "--cache-capacity", "7", "true"])

    args = parse_args()

    assert (args.num_proc, args.cache_capacity, args.command) == (2, 7, ["true"])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--cycle-time-ms", "-1"], "--cycle-time-ms: expected a number of 0 or more, got '-1'"),
        (["--autotune-gaussian-process-noise", "2"], "--autotune-gaussian-process-noise"),
        (["--blacklist-cooldown-range", "0", "9"], "--blacklist-cooldown-range: expected an integer from 1"),
        (["--config-file", "/no/such.yaml"], "--config-file: cannot read '/no/such.yaml'"),
    ],
)
def test_a_value_that_is_refused_is_a_value_error_with_the_launchers_text(
    words: list[str], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        parse_args(["-np", "1", *words, "true"])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-np", "1", "--no-such-option"], "unknown option '--no-such-option'"),
        (["-np", "1", "--cycle-time-ms", "-1", "--no-such-option"], "unknown option '--no-such-option'"),
        (["-np", "two"], "-np: expected an integer, got 'two'"),
        (["-np", "1", "--cycle-time-ms", "fast"], "--cycle-time-ms: expected a number, got 'fast'"),
        (["-np", "1", "--log-level", "LOUD"], "--log-level: expected TRACE, DEBUG"),
        (["-np", "1", "--gloo", "--mpi"], "--mpi contradicts --gloo"),
        (["-np", "1", "-H", "a:1", "-hostfile", "f"], "-H and --hostfile contradict each other"),
        (
            ["-np", "1", "-H", "a:1", "--host-discovery-script", "f"],
            "--host-discovery-script and -H contradict",
        ),
        (["-np", "1", "--ver"], "option --ver is ambiguous: it could be --verbose or --version"),
        (["true"], "the number of workers is missing: give -np N"),
    ],
)
def test_words_that_are_not_understood_end_the_process_as_argparse_does(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_JOB_NODELIST", "LSB_JOBID", "OMPI_MCA_orte_default_hostfile"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(SystemExit) as ended:
        parse_args(words)

    assert ended.value.code == 2
    usage, error = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: horovodrun -np N ")
    assert error.startswith(f"horovodrun: error: {text}")


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["-np", "4", "-H", "localhost:2"], "hosts", "localhost:2"),
        (["-np", "4", "-H", "not a host"], "hosts", "not a host"),
        (["-np", "1", "--hostfile", "/no/such/file"], "hostfile", "/no/such/file"),
        (["-np", "1", "--mpi"], "use_mpi", True),
        (["-np", "1", "--jsrun"], "use_jsrun", True),
        (
            ["-np", "1", "--min-np", "1", "--host-disc", "/no/such/file"],
            "host_discovery_script",
            "/no/such/file",
        ),
    ],
)
def test_what_only_a_job_needs_is_not_asked_for(
    words: list[str], name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOROVOD_RUN_EXECUTABLE", find_program())
    monkeypatch.setenv("PATH", "/nowhere")

    assert getattr(parse_args([*words, "true"]), name) == value


@pytest.mark.parametrize(
    "variables",
    [
        {"LSB_JOBID": "7"},
        {"SLURM_JOB_NODELIST": "far[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)"},
        {"OMPI_MCA_orte_default_hostfile": "/no/such/file"},
    ],
)
def test_a_batch_system_may_say_how_many_processes_there_are(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert parse_args(["true"]).num_proc is None


def test_a_script_that_finds_hosts_takes_the_place_of_others() -> None:
    args = SimpleNamespace(hosts="a:1", hostfile=None, host_discovery_script="./find")

    assert option_words(args) == ["--host-discovery-script=./find"]


def test_questions_print_their_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_args(["--check-build"])

    assert ended.value.code == 0
    assert "Available Controllers:" in capsys.readouterr().out


def test_options_that_are_not_given_say_nothing() -> None:
    assert option_words(_HorovodArgs()) == ["--num-proc=1"]


def test_numbers_of_processes_have_old_names_too() -> None:
    args = _HorovodArgs()
    args.np, args.min_np, args.max_np = 4, 2, 8

    assert (args.num_proc, args.min_num_proc, args.max_num_proc) == (4, 2, 8)
    assert (args.np, args.min_np, args.max_np) == (4, 2, 8)
    assert option_words(args) == ["--num-proc=4", "--min-num-proc=2", "--max-num-proc=8"]


def test_variables_of_the_workers_follow_from_the_options() -> None:
    args = parse_args(
        ["-np", "1", "--fusion-threshold-mb", "10", "--cycle-time-ms", "20", "--no-stall-check", "true"]
    )
    env = {"HOROVOD_CYCLE_TIME": "1", "OTHER": "x"}

    config_parser.set_env_from_args(env, args)

    assert env == {
        config_parser.HOROVOD_FUSION_THRESHOLD: "10485760",
        config_parser.HOROVOD_CYCLE_TIME: "20.0",
        config_parser.HOROVOD_STALL_CHECK_DISABLE: "1",
        "OTHER": "x",
    }


def test_a_configuration_fills_in_what_the_command_line_left_open() -> None:
    args = SimpleNamespace(cycle_time_ms=5.0, fusion_threshold_mb=None, no_stall_check=None, use_mpi=None)
    config = {
        "controller": "mpi",
        "params": {"cycle_time_ms": 9, "fusion_threshold_mb": 3, "cache_capacity": None},
        "stall_check": {"enabled": False},
        "timeline": {"filename": "it's.json"},
    }

    config_parser.set_args_from_config(args, config, {"cycle_time_ms"})

    assert (args.cycle_time_ms, args.fusion_threshold_mb, args.no_stall_check) == (5.0, 3, True)
    assert (args.timeline_filename, args.use_mpi) == ("it's.json", True)


def test_a_configuration_leaves_times_of_the_log_as_the_command_line_has_them() -> None:
    config = {"logging": {"with_timestamp": False}}
    open_args, given = SimpleNamespace(), SimpleNamespace(log_with_timestamp=True)

    config_parser.set_args_from_config(open_args, config, set())
    config_parser.set_args_from_config(given, config, {"log_with_timestamp"})

    assert open_args.log_with_timestamp is False
    assert given.log_with_timestamp is True
    assert config_parser.set_env_from_args({}, open_args) == {config_parser.HOROVOD_LOG_HIDE_TIME: "1"}


def test_sections_without_enabled_have_a_default() -> None:
    args = SimpleNamespace(autotune=True, no_stall_check=True)
    config = {"autotune": {"warmup_samples": 2}, "stall_check": {"warning_time_seconds": 9}}

    config_parser.set_args_from_config(args, config, set())

    assert (args.autotune, args.autotune_warmup_samples) == (False, 2)
    assert (args.no_stall_check, args.stall_check_warning_time_seconds) == (False, 9)
    kept = SimpleNamespace(autotune=True, no_stall_check=True)
    config_parser.set_args_from_config(kept, config, {"autotune", "no_stall_check"})
    assert kept.autotune
    assert kept.no_stall_check


def test_tcp_keeps_nccl_from_infiniband() -> None:
    env = config_parser.set_env_from_args({}, SimpleNamespace(tcp_flag=True))

    assert env == {config_parser.NCCL_IB_DISABLE: "1"}
    assert config_parser.set_env_from_args({}, SimpleNamespace(tcp_flag=None)) == {}


def test_values_that_do_not_fit_are_refused() -> None:
    config_parser.validate_config_args(SimpleNamespace(cache_capacity=0))
    with pytest.raises(ValueError, match="--cache-capacity"):
        config_parser.validate_config_args(SimpleNamespace(cache_capacity=-1))
    with pytest.raises(ValueError, match="controller"):
        config_parser.set_args_from_config(SimpleNamespace(), {"controller": "smoke"}, ())


def test_the_rank_file_of_jsrun_is_the_launchers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted, launcher = tmp_path / "wanted", tmp_path / "launcher"
    # LSF runs on its own machines only: this is what the launcher says there.
    answer = json.dumps({"rank_file": "overlapping_rs: allow\n"})
    launcher.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    launcher.chmod(0o700)
    monkeypatch.setenv("HOROVOD_RUN_EXECUTABLE", str(launcher))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    made = Path(generate_jsrun_rankfile(Settings(num_proc=2)))
    assert generate_jsrun_rankfile(Settings(num_proc=2), str(wanted)) == str(wanted)

    assert made.parent == tmp_path
    assert made.read_text() == wanted.read_text() == "overlapping_rs: allow\n"
