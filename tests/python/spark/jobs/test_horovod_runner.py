"""HorovodRunner, with Spark and without."""

import sys

import cloudpickle
import pytest
from spark_sessions import session

from horovod.spark import HorovodRunner, log_to_driver

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def spark():
    with session("local[2]") as one:
        yield one


def _main(first, second):
    from horovod._core.basics import HorovodBasics

    hvd = HorovodBasics()
    hvd.init()
    print(f"rank {hvd.rank()} prints")
    if hvd.rank() == 0:
        log_to_driver("x" * 5000)
    return first + second, hvd.rank(), hvd.size()


def test_barrier_tasks_return_the_value_of_rank_0(capfd):
    assert HorovodRunner(np=2).run(_main, first=1, second=2) == (3, 0, 2)

    lines = capfd.readouterr().out.splitlines()
    assert "x" * 4000 in lines
    assert not [line for line in lines if "prints" in line]


def test_all_output_is_shown_on_request(capfd):
    HorovodRunner(np=2, driver_log_verbosity="all").run(_main, first=1, second=2)

    lines = capfd.readouterr().out.splitlines()
    assert {"[0]<stdout>:rank 0 prints", "[1]<stdout>:rank 1 prints"} <= set(lines)


def test_negative_np_runs_local_processes(capfd):
    assert HorovodRunner(np=-2).run(_main, first=1, second=2) == (3, 0, 2)

    lines = capfd.readouterr().out.splitlines()
    assert f"[0]<stdout>:{'x' * 4000}" in lines
    assert "[1]<stdout>:rank 1 prints" in lines


def test_np_0_takes_all_slots():
    with pytest.warns(DeprecationWarning, match="np=0"):
        runner = HorovodRunner(np=0)

    assert runner.run(_main, first=1, second=2) == (3, 0, 2)


def test_bad_arguments():
    with pytest.raises(TypeError):
        HorovodRunner(2)
    with pytest.raises(TypeError, match="np must be an integer"):
        HorovodRunner(np="2")
    with pytest.raises(ValueError, match="driver_log_verbosity must be one of"):
        HorovodRunner(np=2, driver_log_verbosity="some")
