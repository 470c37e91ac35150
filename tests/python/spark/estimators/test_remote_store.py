"""A store on a file system that is not the local one: all of fit and transform goes through it."""

from __future__ import annotations

import os

import fsspec
import torch
from estimator_data import ProcessBackend
from viewed_files import ROOT_VARIABLE, URL, ViewedFiles, mount

from horovod.spark.common.store import FilesystemStore, Store
from horovod.spark.torch import TorchEstimator


def test_a_fit_of_two_ranks_reads_and_writes_through_fsspec(spark, xor, tmp_path, monkeypatch):
    root = tmp_path / "remote"
    packages = mount(spark, root)
    monkeypatch.setenv(ROOT_VARIABLE, str(root))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(packages), os.environ["PYTHONPATH"]]))
    fsspec.register_implementation("viewfs", ViewedFiles, clobber=True)
    store = Store.create(f"{URL}/data/experiment")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    estimator = TorchEstimator(
        backend=ProcessBackend(2),
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

    trained = estimator.fit(xor)

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
