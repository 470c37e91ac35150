"""A store on a file system that is not the local one: all of fit and transform goes through it."""

from __future__ import annotations

import os

import fsspec
import pytest
import torch
from estimator_data import ProcessBackend
from viewed_files import ROOT_VARIABLE, URL, ViewedFiles, mount

from horovod.spark.common.store import FilesystemStore, Store
from horovod.spark.torch import TorchEstimator


@pytest.fixture
def root(spark, tmp_path, monkeypatch):
    """The folder of the file system."""
    folder = tmp_path / "remote"
    packages = mount(spark, folder)
    monkeypatch.setenv(ROOT_VARIABLE, str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(packages), os.environ["PYTHONPATH"]]))
    fsspec.register_implementation("viewfs", ViewedFiles, clobber=True)
    return folder


def _estimator(store, backend):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    return TorchEstimator(
        backend=backend,
        store=store,
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.05),
        loss=torch.nn.functional.mse_loss,
        input_shapes=[[-1, 2]],
        feature_cols=["features"],
        label_cols=["y"],
        validation="held_out",
        batch_size=8,
        epochs=25,
        random_seed=1,
        verbose=0,
        run_id="remote",
        partitions_per_process=2,
    )


def test_a_fit_of_two_ranks_reads_and_writes_through_fsspec(xor, root):
    store = Store.create(f"{URL}/data/experiment")

    trained = _estimator(store, ProcessBackend(2)).fit(xor)

    assert type(store) is FilesystemStore
    readers = {int(path.name) for path in (root / "readers").iterdir()}
    assert os.getpid() in readers
    assert len(readers) == 3, "the driver and two ranks"
    below = root / "data/experiment"
    assert list(below.glob("intermediate_train_data*/*.parquet"))
    assert list(below.glob("intermediate_val_data*/*.parquet"))
    assert store.read(store.get_checkpoint_path("remote"))
    assert store.exists(f"{store.get_logs_path('remote')}/metrics.jsonl")
    losses = [epoch["validation"]["loss"] for epoch in trained.getHistory()]
    assert losses[-1] < losses[0] / 2
    rows = trained.transform(xor).select("y", "y__output").collect()
    assert [round(row.y__output) for row in rows] == [row.y for row in rows]


class Elsewhere(ProcessBackend):
    """Its processes have another folder under the name of the store, as if it were of their own machine."""

    def run(self, fn, args=(), kwargs=None, env=None):
        return super().run(fn, args, kwargs, {**(env or {}), ROOT_VARIABLE: "/nowhere"})


def test_a_store_that_ranks_cannot_read_is_named_by_them(xor, root):
    store = Store.create(f"{URL}/data/experiment")

    with pytest.raises(RuntimeError, match=rf"rank \d on \S+ cannot read the store's data at {URL}/data/exp"):
        _estimator(store, Elsewhere(2)).fit(xor)
