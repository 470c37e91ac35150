"""Helpers that need no job."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path

import pytest

import horovod
from horovod._core import codes
from horovod._core.names import group_names, operation_name
from horovod.common import util
from horovod.common.basics import HorovodBasics
from horovod.common.exceptions import (
    HorovodInternalError,
    HorovodVersionMismatchError,
    HostsUpdatedInterrupt,
    get_version_mismatch_message,
)
from horovod.common.process_sets import ProcessSet, _temp_process_set_object, global_process_set
from horovod.runner import launch
from horovod.runner.util.threads import in_thread, on_event


def test_version() -> None:
    assert horovod.__version__.count(".") == 2


def test_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = horovod.nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("op", "average", "expected"),
    [(None, None, codes.AVERAGE), (codes.SUM, None, codes.SUM), (codes.MIN, None, codes.MIN)],
)
def test_op_alone(op: int | None, average: bool | None, expected: int) -> None:
    resolve = util.get_average_backwards_compatibility_fun(HorovodBasics())
    assert resolve(op, average) == expected


def test_average_alone_warns() -> None:
    resolve = util.get_average_backwards_compatibility_fun(HorovodBasics())
    with pytest.warns(DeprecationWarning, match="average"):
        assert resolve(None, True) == codes.AVERAGE
    with pytest.warns(DeprecationWarning, match="average"):
        assert resolve(None, False) == codes.SUM


def test_op_and_average() -> None:
    resolve = util.get_average_backwards_compatibility_fun(HorovodBasics())
    with pytest.raises(ValueError, match="both"):
        resolve(codes.SUM, True)


def test_names() -> None:
    assert operation_name("allreduce", "x") == "allreduce.x"
    assert operation_name("allreduce", None) is None
    assert group_names("allgather", "x", 2) == [
        "grouped_allgather.x_1of2",
        "grouped_allgather.x_2of2",
    ]
    assert group_names("allgather", None, 2) == [None, None]


def test_exceptions() -> None:
    assert issubclass(HorovodInternalError, RuntimeError)
    interrupt = pickle.loads(pickle.dumps(HostsUpdatedInterrupt(skip_sync=True)))
    assert interrupt.skip_sync is True
    mismatch = pickle.loads(pickle.dumps(HorovodVersionMismatchError("torch", "2", "1")))
    assert (mismatch.name, mismatch.version, mismatch.installed_version) == ("torch", "2", "1")
    assert isinstance(mismatch, ImportError)
    assert str(mismatch) == get_version_mismatch_message("torch", "2", "1")


def test_process_set_objects() -> None:
    assert str(ProcessSet([3, 1])) == "ProcessSet(process_set_id=None, ranks=[1, 3], mpi_comm=None)"
    assert ProcessSet(range(3)).ranks == [0, 1, 2]
    assert ProcessSet([0]).size() is None
    assert global_process_set.process_set_id == 0
    assert _temp_process_set_object(4).process_set_id == 4
    assert _temp_process_set_object(4).included() is None
    for wrong in ([0, "1"], [1.0], 5, None):
        with pytest.raises(ValueError, match="ranks"):
            ProcessSet(wrong)


def test_error_codes_are_attributes_of_basics() -> None:
    basics = HorovodBasics(__file__, "mpi_lib")
    names = ["INIT", "DYNAMIC", "UNKNOWN_SET", "FOREIGN_SET", "SHUTDOWN", "EXISTING_SET"]
    assert [getattr(basics, f"HOROVOD_PROCESS_SET_ERROR_{n}") for n in names] == [
        -1,
        -2,
        -3,
        -4,
        -5,
        -6,
    ]
    ops = ["Average", "Sum", "Adasum", "Min", "Max", "Product"]
    assert [getattr(basics, op) for op in ops] == list(range(6))
    assert basics.MPI_LIB_CTYPES.hvd_abi_version() == 1


def test_queries_before_init() -> None:
    basics = HorovodBasics()
    for query in (
        basics.rank,
        basics.size,
        basics.local_rank,
        basics.cross_size,
        basics.mpi_threads_supported,
    ):
        with pytest.raises(ValueError, match=r"hvd\.init"):
            query()
    assert basics.is_initialized() is False
    with pytest.raises(ValueError, match=r"hvd\.init"):
        global_process_set.size()
    with pytest.raises(ValueError, match="init"):
        basics._get_process_set_ids_and_ranks()


@pytest.mark.parametrize("comm", [5, object(), ["a"]])
def test_communicators_need_mpi(comm: object) -> None:
    with pytest.raises(ValueError, match="comm"):
        HorovodBasics().init(comm)


def test_split_list() -> None:
    assert util.split_list([1, 2, 3, 4, 5], 2) == [[1, 2, 3], [4, 5]]
    assert util.split_list([1], 3) == [[1], [], []]


def test_env() -> None:
    os.environ["HVD_TEST_A"] = "before"
    with util.env(HVD_TEST_A="inside", HVD_TEST_B="new", HVD_TEST_C=None):
        assert os.environ["HVD_TEST_A"] == "inside"
        assert os.environ["HVD_TEST_B"] == "new"
        assert "HVD_TEST_C" not in os.environ
    assert os.environ.pop("HVD_TEST_A") == "before"
    assert "HVD_TEST_B" not in os.environ


@pytest.mark.parametrize(
    ("version", "target", "expected"),
    [
        ("1.2.3", "1.2.3", True),
        ("1.10.0", "1.9.9", True),
        ("1.2", "1.2.0", True),
        ("2.13.0+cpu", "2.13.0", True),
        ("2.1.0rc1", "2.1.0", False),
        ("1.2.2", "1.2.3", False),
    ],
)
def test_versions(version: str, target: str, expected: bool) -> None:
    assert util.is_version_greater_equal_than(version, target) is expected


@pytest.mark.parametrize(("version", "target"), [(1, "1.0.0"), ("1.0.0", "1.0"), ("x", "1.0.0")])
def test_versions_that_are_none(version: object, target: str) -> None:
    with pytest.raises(ValueError, match="version"):
        util.is_version_greater_equal_than(version, target)


def test_small_helpers(tmp_path: object) -> None:
    assert [n for n in range(10) if util.num_rank_is_power_2(n)] == [1, 2, 4, 8]
    assert util.is_iterable([]) is True
    assert util.is_iterable(3) is False
    assert util.get_ext_suffix().endswith(".so")
    assert util.EXTENSIONS == ["tensorflow", "torch", "mxnet"]
    with pytest.raises(ImportError, match="not been built"):
        util.check_extension("horovod.x", "HOROVOD_WITH_X", f"{tmp_path}/__init__.py", "mpi_lib")
    util.check_extension("horovod.torch", "HOROVOD_WITH_PYTORCH", f"{tmp_path}/__init__.py", "mpi_lib_v2")
    assert (
        util.gloo_built(),
        util.nccl_built(),
        util.ddl_built(),
        util.ccl_built(),
    ) == (True, 0, False, False)


def test_mpi_is_built_where_there_is_an_mpirun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert util.mpi_built() is False
    assert launch.is_gloo_used() is True

    program = tmp_path / "mpirun"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    assert util.mpi_built() is True
    assert launch.is_gloo_used() is False


def test_cache_remembers_by_arguments() -> None:
    calls = []

    @util._cache
    def double(x: int, plus: int = 0) -> int:
        calls.append(x)
        return 2 * x + plus

    assert [double(1), double(1), double(1, plus=1), double(1, plus=1)] == [2, 2, 3, 3]
    assert calls == [1, 1]


def test_extension_available() -> None:
    assert util.extension_available("torch") is True
    assert util.extension_available("no_such_framework") is False


def test_in_thread() -> None:
    done = threading.Event()
    thread = in_thread(done.set, name="setter")
    thread.join(10)
    assert done.is_set()
    assert thread.daemon
    with pytest.raises(ValueError, match="tuple"):
        in_thread(print, args="text")


def test_on_event() -> None:
    event, stop, called = threading.Event(), threading.Event(), []
    thread = on_event(event, called.append, (1,), stop=stop, check_stop_interval_s=0.01)
    event.set()
    thread.join(10)
    assert called == [1]

    stopped = on_event(threading.Event(), called.append, (2,), stop=stop, check_stop_interval_s=0.01)
    stop.set()
    stopped.join(10)
    assert called == [1]
