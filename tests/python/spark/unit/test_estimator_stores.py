"""Paths and files of stores."""

from __future__ import annotations

import json
import pickle

import pytest

from horovod.spark.common._run_log import RunFiles
from horovod.spark.common.store import DBFSLocalStore, FilesystemStore, HDFSStore, LocalStore, Store


def test_a_store_has_its_folders_below_the_prefix(tmp_path):
    store = Store.create(str(tmp_path))

    prefix = f"file://{tmp_path}"
    assert type(store) is FilesystemStore
    assert store.get_train_data_path() == f"{prefix}/intermediate_train_data"
    assert store.get_val_data_path(3) == f"{prefix}/intermediate_val_data.3"
    assert store.get_test_data_path() == f"{prefix}/intermediate_test_data"
    assert store.get_run_path("r") == f"{prefix}/runs/r"
    assert store.get_checkpoint_path("r") == f"{prefix}/runs/r/checkpoint"
    assert store.get_logs_path("r") == f"{prefix}/runs/r/logs"
    assert store.get_data_metadata_path("/data").endswith("_cached_metadata.pkl")


def test_paths_can_be_given_and_runs_need_not_be_kept(tmp_path):
    store = LocalStore(str(tmp_path), train_path="/train", runs_path="s3://b/runs", save_runs=False)

    assert store.get_train_data_path() == "file:///train"
    assert store.get_run_path("r") == "s3://b/runs/r"
    assert store.get_checkpoint_path("r") is None
    assert store.get_logs_path("r") is None
    assert not store.saving_runs()


def test_files_are_written_and_read(tmp_path):
    store = Store.create(f"file://{tmp_path}/deep")
    path = f"{store.prefix_path}/a/b.txt"

    assert not store.exists(path)
    store.write_text(path, "hello")

    assert store.exists(path)
    assert store.read(path) == b"hello"
    assert not store.is_parquet_dataset(f"{store.prefix_path}/a")


def test_a_run_is_copied_to_the_store_and_found_there(tmp_path):
    store = Store.create(str(tmp_path))
    remote = pickle.loads(pickle.dumps(store.to_remote("run", 1)))
    with remote.get_local_output_dir() as folder:
        for name in ("checkpoint", "epoch=1.ckpt", "epoch=2.ckpt"):
            with open(f"{folder}/{name}", "w") as file:  # noqa: PTH123
                file.write(name)
        remote.sync(folder)
        remote.sync(folder)

    assert store.read(store.get_checkpoint_path("run")) == b"checkpoint"
    assert [path.rsplit("/", 1)[1] for path in store.get_checkpoints("run")] == [
        "epoch=1.ckpt",
        "epoch=2.ckpt",
    ]
    assert store.get_checkpoints("other") == []
    assert remote.train_data_path.endswith("intermediate_train_data.1")


@pytest.mark.parametrize("prefix", ["{}", "memory://logs/{}"])
def test_the_log_of_a_run_that_goes_on_is_kept_and_counted_on(tmp_path, prefix):
    store = Store.create(prefix.format(tmp_path))

    for losses in ([3.0, 2.0], [1.0]):
        with RunFiles.on_rank(0, store.to_remote("run", None)) as files:
            for epoch, loss in enumerate(losses):
                files.epoch({"epoch": epoch, "loss": loss}, b"state")

    lines = store.read(f"{store.get_logs_path('run')}/metrics.jsonl").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"epoch": epoch, "loss": loss} for epoch, loss in enumerate([3.0, 2.0, 1.0])
    ]


def test_anything_that_fsspec_opens_is_a_store():
    store = Store.create("memory://estimators/prefix")
    store.write_text(f"{store.prefix_path}/x", "1")

    assert store.read("memory://estimators/prefix/x") == b"1"
    assert store.get_train_data_path() == "memory://estimators/prefix/intermediate_train_data"


def test_the_check_that_a_folder_can_be_written_to_leaves_nothing_in_it(tmp_path):
    store = LocalStore(str(tmp_path), runs_path="memory://elsewhere/runs")

    store.check_writable(f"{store.prefix_path}/deep")
    store.check_writable(store.get_runs_path())

    assert list((tmp_path / "deep").iterdir()) == []
    assert list(tmp_path.iterdir()) == [tmp_path / "deep"]
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeError, match=r"cannot write to the store at file://.*/file: \w*Error"):
        store.check_writable(f"{store.prefix_path}/file")


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        ("hdfs://name:8020/user/x", "hdfs://name:8020/user/x"),
        ("hdfs:///user/x", "hdfs:///user/x"),
        ("/user/x", "hdfs:///user/x"),
    ],
)
def test_forms_of_hdfs_paths(path, prefix):
    store = HDFSStore(path)

    assert store.prefix_path == prefix
    assert store.get_localized_path(store.get_train_data_path()) == "/user/x/intermediate_train_data"


def test_hdfs_is_chosen_by_its_scheme_and_takes_a_name_node():
    assert type(Store.create("hdfs://host/x")) is HDFSStore
    store = HDFSStore("/x", host="name", port=9000, user="me")
    assert store.get_train_data_path() == "hdfs://name:9000/x/intermediate_train_data"
    assert store.storage_options == {"user": "me"}


@pytest.mark.parametrize("path", ["file:///x", "s3://b/x", "hdfs://host", "relative/x"])
def test_wrong_hdfs_paths_are_errors(path):
    with pytest.raises(ValueError, match="HDFS path"):
        HDFSStore(path)


@pytest.mark.parametrize("path", ["/dbfs/a", "dbfs:/a", "file:/dbfs/a", "file:///dbfs/a"])
def test_forms_of_dbfs_paths(path, monkeypatch):
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "15.4")

    store = Store.create(path)

    assert type(store) is DBFSLocalStore
    assert store.prefix_path == "file:///dbfs/a"
    assert store.get_checkpoint_filename() == "checkpoint.tf"


def test_dbfs_outside_of_databricks_is_an_ordinary_path(monkeypatch):
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)

    assert type(Store.create("/dbfs/a")) is FilesystemStore


@pytest.mark.parametrize("path", ["/tmp/a", "dbfs://tmp/a"])
def test_dbfs_store_refuses_other_paths(path):
    assert not DBFSLocalStore.matches_dbfs(path)
    with pytest.raises(ValueError, match=f"DBFS path '{path}'"):
        DBFSLocalStore(path)


def test_dbfs_paths_are_those_of_the_folder_of_every_node():
    assert DBFSLocalStore.normalize_path("dbfs:/tmp/a") == "/dbfs/tmp/a"
    assert DBFSLocalStore.matches_dbfs("file:/dbfs/a")


def test_a_rank_that_does_not_see_the_data_says_so(tmp_path):
    remote = Store.create(str(tmp_path)).to_remote("run", None)

    with pytest.raises(RuntimeError, match=r"rank 3 on .* cannot read the store's data at file://"):
        remote.check_reachable(3)
