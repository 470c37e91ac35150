"""The tf.data service: a compute job and a training job, real dispatchers and workers in real processes."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from job import clean_environment, horovodrun, run, run_job

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
LIMIT_SECONDS = 240  # importing TensorFlow on a busy machine takes its time


class ComputeJob:
    """A job of compute workers that runs beside the test."""

    def __init__(self, folder: Path, workers: int, *options: str) -> None:
        self.configfile = str(folder / "compute.json")
        self._log = folder / "compute.log"
        module = ["-m", "horovod.tensorflow.data.compute_worker", self.configfile, "--timeout", "120"]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [horovodrun(), "-np", str(workers), sys.executable, *module, *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=clean_environment(**QUIET),
            )

    def end(self) -> int:
        return self.process.wait(LIMIT_SECONDS)

    @property
    def output(self) -> str:
        return self._log.read_text()


@contextlib.contextmanager
def compute_job(folder: Path, workers: int, *options: str) -> Iterator[ComputeJob]:
    job = ComputeJob(folder, workers, *options)
    try:
        yield job
    finally:
        job.process.terminate()  # it has ended by itself, unless the test failed
        job.end()


TRAINING = """
import sys
import tensorflow as tf
import horovod.tensorflow as hvd
from horovod.tensorflow.data.compute_service import TfDataServiceConfig, tf_data_service

hvd.init()
config = TfDataServiceConfig.read({configfile!r}, wait_for_file_creation=True)
rank, size = hvd.rank(), hvd.size()
{read}
everything = hvd.allgather_object(numbers)
if rank == 0:
    config.compute_client().shutdown()
    print("read:", everything)
"""

READ_TOGETHER = """
data = tf.data.Dataset.range(40).map(lambda i: 2 * i)
data = data.send_to_data_service(config, rank, size, reuse_dataset=True)
hvd.barrier()  # who comes last would find everything read
numbers = [int(i) for i in data]
"""

READ_ALONE = """
data = tf.data.Dataset.range(20).map(lambda i: 2 * i)
numbers = [int(i) for i in data.send_to_data_service(config, rank)]
"""

READ_IN_TURNS = """
data = tf.data.Dataset.range(4).repeat()
data = data.send_to_data_service(
    config, rank, size, processing_mode="parallel_epochs", reuse_dataset=True, round_robin=True
)
numbers = [int(i) for i in data.take(10)]
"""

READ_FROM_TRAINING_SIDE = """
try:
    tf.data.Dataset.range(4).send_to_data_service(config, rank)
except RuntimeError as error:
    assert "tf_data_service" in str(error)
else:
    raise AssertionError("with dispatchers on the training side it must be refused")
with tf_data_service(config, rank) as address:
    data = tf.data.Dataset.range(20).map(lambda i: 2 * i)
    data = data.apply(tf.data.experimental.service.distribute("distributed_epoch", address))
    numbers = [int(i) for i in data]
    hvd.barrier()  # rank 0 may run the dispatcher of all
"""


def read_of(tmp_path: Path, workers: int, read: str, *options: str) -> list[list[int]]:
    """Return what each rank of a training job of two has read."""
    with compute_job(tmp_path, workers, *options) as compute:
        training = run_job(
            tmp_path,
            2,
            TRAINING.format(configfile=compute.configfile, read=read),
            limit_seconds=LIMIT_SECONDS,
            **QUIET,
        )

        assert training.code == 0, training.output + compute.output
        assert compute.end() == 0, compute.output
        assert Path(compute.configfile).stat().st_mode & 0o077 == 0  # it holds the key
    (line,) = [line for line in training.output.splitlines() if "read: " in line]
    return json.loads(line.split("read: ")[1])


@pytest.mark.parametrize("dispatchers", ["1", "2"])
def test_every_rank_reads_its_own_dataset(dispatchers, tmp_path):
    results = read_of(tmp_path, 2, READ_ALONE, "--dispatchers", dispatchers)

    assert [sorted(numbers) for numbers in results] == [list(range(0, 40, 2))] * 2


def test_ranks_share_a_dataset(tmp_path):
    results = read_of(tmp_path, 2, READ_TOGETHER)

    assert sorted(results[0] + results[1]) == list(range(0, 80, 2))


def test_ranks_read_in_turns(tmp_path):
    results = read_of(tmp_path, 1, READ_IN_TURNS)

    assert results == [[0, 2] * 5, [1, 3] * 5]


@pytest.mark.parametrize("dispatchers", ["1", "2"])
def test_dispatchers_in_the_training_job(dispatchers, tmp_path):
    options = ["--dispatchers", dispatchers, "--dispatcher-side", "training"]

    results = read_of(tmp_path, 2, READ_FROM_TRAINING_SIDE, *options)

    assert [sorted(numbers) for numbers in results] == [list(range(0, 40, 2))] * 2


def test_processes_that_cannot_be_divided(tmp_path):
    with compute_job(tmp_path, 1, "--dispatchers", "2") as compute:
        assert compute.end() != 0
        assert "must be a multiple of the dispatchers, 2" in compute.output


def test_the_example(tmp_path):
    with compute_job(tmp_path, 2) as compute:
        program = str(EXAMPLES / "tensorflow/data_service.py")
        done = run(
            [horovodrun(), "-np", "2", sys.executable, program, compute.configfile],
            limit_seconds=LIMIT_SECONDS,
            **QUIET,
        )

        assert done.code == 0, done.output
        assert "done" in done.output
        assert compute.end() == 0, compute.output


ONE_AFTER_ANOTHER = """
import os
import horovod.tensorflow as hvd
from horovod.runner.util.threads import in_thread
from horovod.tensorflow.data.compute_service import TfDataServiceConfig
from horovod.tensorflow.data.compute_worker import main

hvd.init()
for number in range(4):
    worker = in_thread(main, (1, "compute", {configfile!r}, 60))
    client = TfDataServiceConfig.read({configfile!r}, wait_for_file_creation=True).compute_client()
    assert client.wait_for_dispatcher_registration(0, 60)
    hvd.allgather_object(number, name="all have read the file")
    if hvd.rank() == 0:
        client.shutdown()
    worker.join(60)
    assert not worker.is_alive()
    if hvd.rank() == 0:
        os.unlink({configfile!r})
print("rank", hvd.rank(), "is done")
"""


def test_services_one_after_another_with_one_file(tmp_path):
    program = ONE_AFTER_ANOTHER.format(configfile=str(tmp_path / "compute.json"))

    done = run_job(tmp_path, 2, program, limit_seconds=LIMIT_SECONDS, **QUIET)

    assert done.code == 0, done.output
    assert {f"rank {rank} is done" in done.output for rank in range(2)} == {True}


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_a_configuration_of_somebody_else_is_not_read(tmp_path):
    from horovod.tensorflow.data.compute_service import TfDataServiceConfig

    path, link = tmp_path / "compute.json", tmp_path / "link.json"
    TfDataServiceConfig(1, 1, "training", {"eth0": [("10.0.0.1", 7)]}, b"key").write(str(path))
    link.symlink_to(path)
    with pytest.raises(OSError, match="link"):
        TfDataServiceConfig.read(str(link))
    os.chown(path, 65534, 65534)

    with pytest.raises(PermissionError, match="belongs to user 65534, expected user 0"):
        TfDataServiceConfig.read(str(path))


def test_the_configuration_in_a_file(tmp_path):
    from horovod.tensorflow.data.compute_service import TfDataServiceConfig

    config = TfDataServiceConfig(2, 3, "training", {"eth0": [("10.0.0.1", 7)]}, b"\x01\xff", 5)
    path = tmp_path / "compute.json"

    config.write(str(path))

    assert TfDataServiceConfig.read(str(path)) == config
    assert json.loads(path.read_text())["key"] == "01ff"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["compute.json"]
    path.chmod(0o640)
    with pytest.raises(PermissionError, match="expected mode 0600, got 0640"):
        TfDataServiceConfig.read(str(path))
    path.chmod(0o600)
    path.write_text("{}")
    with pytest.raises(ValueError, match="not a configuration of a tf"):
        TfDataServiceConfig.read(str(path))
    with pytest.raises(ValueError, match="'compute' or 'training', got 'both'"):
        TfDataServiceConfig(1, 1, "both", {}, b"")
