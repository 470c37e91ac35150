"""Parts of a Spark job that need no Spark."""

import importlib
import io
from types import SimpleNamespace

import pytest
from packages import need

import horovod.spark
from horovod._cluster.failures import Failure
from horovod.runner.common.util.timeout import TimeoutException
from horovod.spark import conf
from horovod.spark._barrier import REFUSAL, join_parts
from horovod.spark._failure_text import find_failures, find_refusal, from_json, to_json, to_text
from horovod.spark._frames import Kind, read_frame, write_frame
from horovod.spark._launch import _check_started, start_seconds_of
from horovod.spark._process import own_folders
from horovod.spark.task import get_available_devices

FAILURE = Failure(3, "host", 1.5, "ValueError: ä", "Traceback\n  frames\nValueError: ä\n", b"an object")


def test_a_failure_is_found_again_in_the_text_of_spark():
    other = Failure(1, "host", 1.0, "KeyError: 1", "x" * 100_000, None)
    first, second = (to_text(failure, is_known=False) for failure in (FAILURE, other))
    text = f"Py4JJavaError: {first} at org.apache {second} and again {first}"

    found = find_failures(text)

    assert [failure.rank for failure in found] == [3, 1]
    assert found[0].traceback == FAILURE.traceback
    assert len(found[1].traceback) < 20_000


def test_exceptions_do_not_travel_as_objects():
    assert from_json(to_json(FAILURE)).pickled is None


def test_a_failure_that_the_driver_knows_is_short():
    assert to_text(FAILURE, is_known=True) == "rank 3 on host host failed: ValueError: ä"


@pytest.mark.parametrize("text", ["", "<horovod-failure AAAA>", "<horovod-failure !>"])
def test_damaged_failures_are_none(text):
    assert find_failures(text) == []


@pytest.mark.parametrize("text", ["[]", "{}", '{"rank": "x"}'])
def test_other_json_is_no_failure(text):
    with pytest.raises(ValueError):
        from_json(text)


def test_a_refusal_is_found_in_the_text_of_spark():
    assert find_refusal(f"Exception: {REFUSAL}no horovod here\n at org.apache") == "no horovod here"
    assert find_refusal("Exception: something else") is None


def test_parts_of_results_are_joined_in_any_order():
    rows = [(1, 0, b"c"), (0, 1, b"b"), (0, 0, b"a")]

    assert join_parts(rows, 2) == [b"ab", b"c"]


@pytest.mark.parametrize("rows", [[], [(0, 0, b"a")], [(0, 0, b"a"), (1, 1, b"b")]])
def test_a_missing_part_is_an_error(rows):
    with pytest.raises(RuntimeError, match="no whole result of rank"):
        join_parts(rows, 2)


def test_frames_end_with_their_writer():
    stream = io.BytesIO()
    write_frame(stream, Kind.RESULT, b"abc")
    whole = stream.getvalue()

    assert read_frame(io.BytesIO(whole)) == (Kind.RESULT, b"abc")
    for length in range(len(whole)):
        assert read_frame(io.BytesIO(whole[:length])) is None


def test_folders_of_the_interpreter_are_not_sent():
    path = ["", "/venv/lib/python3.11/site-packages", "/usr/lib/python3.11", "/srv/project", "/venv"]

    assert own_folders(path, ("/venv", "/usr")) == ["/srv/project"]


def test_devices_come_from_the_task(monkeypatch):
    assert get_available_devices() == []
    monkeypatch.setenv("HOROVOD_SPARK_DEVICES", "0,3")
    assert get_available_devices() == ["0", "3"]


def test_settings_of_spark_go_together():
    """Spark does not start if a task may be tried as often on one node as it may fail at all."""
    settings = dict(
        [conf.SPARK_CONF_ALWAYS_RESTART_FAILED_TASK, conf.SPARK_CONF_REUSE_NODE_ALWAYS_FOR_SAME_TASK]
    )

    assert int(settings["spark.excludeOnFailure.task.maxTaskAttemptsPerNode"]) < int(
        settings["spark.task.maxFailures"]
    )
    assert set(settings) < set(conf.SPARK_CONF_DEFAULT_VALUES)


def test_bad_arguments(monkeypatch):
    with pytest.raises(ValueError, match="use_mpi or use_gloo, not both"):
        horovod.spark.run(print, use_mpi=True, use_gloo=True)
    with pytest.raises(ValueError, match="fn must be callable, got int"):
        horovod.spark.run(5)
    monkeypatch.setenv("HOROVOD_SPARK_START_TIMEOUT", "soon")
    with pytest.raises(
        ValueError, match="HOROVOD_SPARK_START_TIMEOUT must be a number of seconds, got 'soon'"
    ):
        horovod.spark.run(print)


def test_without_a_session_it_says_what_is_missing():
    need("pyspark", "spark")

    with pytest.raises(RuntimeError, match="Could not find an active SparkContext"):
        horovod.spark.run(print, num_proc=1)


def test_start_timeout(monkeypatch):
    assert start_seconds_of(None) == 600
    monkeypatch.setenv("HOROVOD_SPARK_START_TIMEOUT", "20")
    assert start_seconds_of(None) == 20
    assert start_seconds_of(3) == 3


def _check(ready, active):
    running = SimpleNamespace(active_tasks=lambda: active)
    console = SimpleNamespace(ready_ranks=lambda: ready)
    _check_started(running, console, 2, 600.0)


@pytest.mark.parametrize(
    ("ready", "active"), [(2, 2), (2, None), (0, 2), (0, None), (1, 2), (1, None), (0, 1)]
)
def test_a_job_that_runs_is_not_ended_because_its_ranks_do_not_reach_the_driver(ready, active):
    _check(ready, active)


def test_a_job_none_of_whose_tasks_runs_is_a_timeout():
    with pytest.raises(TimeoutException, match="0 of 2 were ready after 600 seconds"):
        _check(0, 0)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("driver.driver_service", "SparkDriverService"),
        ("driver.driver_service", "SparkDriverClient"),
        ("driver.host_discovery", "SparkDriverHostDiscovery"),
        ("driver.rsh", "rsh"),
        ("runner", "_task_fn"),
        ("task.gloo_exec_fn", "main"),
        ("task.mpirun_exec_fn", "main"),
        ("task.task_service", "SparkTaskService"),
        ("task.task_service", "SparkTaskClient"),
    ],
)
def test_services_of_the_original_can_be_imported_and_say_that_they_are_gone(module, name):
    gone = getattr(importlib.import_module(f"horovod.spark.{module}"), name)

    with pytest.raises(NotImplementedError, match=rf"horovod\.spark\.{module}\.{name} is not here"):
        gone(0, key=b"")
