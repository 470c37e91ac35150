"""HorovodRunner, with Spark and without."""

import importlib.util
import re
import sys

import cloudpickle
import pytest
from packages import need
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


def _train_keras(backend):
    import os

    os.environ["KERAS_BACKEND"] = backend
    import keras
    import numpy as np

    import horovod.keras as hvd
    from horovod.spark.tensorflow.keras import LogCallback

    hvd.init()
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse")
    callbacks = [hvd.callbacks.MetricAverageCallback()]
    if hvd.rank() == 0:
        callbacks.append(LogCallback(per_batch_log=True))
    x = np.full([4, 2], hvd.rank(), np.float32)
    model.fit(x, x[:, :1] + 1, batch_size=2, epochs=2, verbose=0, callbacks=callbacks)
    return hvd.rank(), hvd.size()


def test_log_callback_tells_the_driver_how_the_training_of_rank_0_goes(capfd, monkeypatch):
    backend = "tensorflow" if importlib.util.find_spec("tensorflow") else "torch"
    monkeypatch.setenv("KERAS_BACKEND", backend)
    need("keras", "spark")

    assert HorovodRunner(np=2).run(_train_keras, backend=backend) == (0, 2)

    lines = capfd.readouterr().out.splitlines()
    told = [line for line in lines if line.startswith(("Epoch", "Batch"))]
    number = r"[0-9.e+-]+"
    expected = []
    for epoch in range(2):
        batches = [rf"Batch {batch}: loss: {number}" for batch in range(2)]
        expected += [f"Epoch {epoch} begins", *batches, rf"Epoch {epoch} ended after .* s: loss: {number}"]
    assert len(told) == len(expected), lines
    assert all(re.fullmatch(text, line) for text, line in zip(expected, told, strict=True)), lines


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
