"""Parameters, and what is saved of them; no Spark runs."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from horovod.runner.common.util import codec
from horovod.spark.common.params import EstimatorParams, ModelParams
from horovod.spark.common.store import Store
from horovod.spark.keras import util as keras_util
from horovod.spark.torch import TorchEstimator, TorchModel
from horovod.spark.torch.estimator import _torch_param_serialize

DEFAULTS = {
    "num_proc": None,
    "metrics": [],
    "validation": None,
    "batch_size": 32,
    "val_batch_size": None,
    "epochs": 1,
    "verbose": 1,
    "callbacks": [],
    "shuffle": True,
    "partitions_per_process": 10,
    "train_reader_num_workers": 2,
    "reader_pool_type": "thread",
    "inmemory_cache_all": False,
    "use_gpu": True,
    "backward_passes_per_step": 1,
    "compress_sparse_cols": False,
    "tensorflow_dataset_prefetch_buffer_size": 0,
}


def test_defaults():
    params = EstimatorParams()

    assert {name: params.getOrDefault(name) for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize(
    ("accessor", "name", "value"),
    [
        ("BatchSize", "batch_size", 7),
        ("ShufflingBufferSize", "shuffle_buffer_size", 100),
        ("TrainReaderNumWorker", "train_reader_num_workers", 4),
        ("ValReaderNumWorker", "val_reader_num_workers", 5),
        ("InMemoryCacheAll", "inmemory_cache_all", True),
        ("UseGpu", "use_gpu", False),
        ("MpStartMethod", "mp_start_method", "spawn"),
        ("LabelCols", "label_cols", ["a", "b"]),
        ("LossWeights", "loss_weights", [0.5, 1.0]),
        ("TransformationFn", "transformation_fn", len),
    ],
)
def test_setters_and_getters(accessor, name, value):
    params = EstimatorParams()

    assert getattr(params, f"set{accessor}")(value) is params
    assert getattr(params, f"get{accessor}")() == value
    assert params.getOrDefault(name) == value
    getattr(params, f"set{accessor}")(None)
    assert getattr(params, f"get{accessor}")() is None


def test_a_value_of_the_wrong_type_is_refused():
    with pytest.raises(TypeError, match="batch_size"):
        EstimatorParams().setBatchSize("many")


def test_instances_do_not_share_lists():
    EstimatorParams().getCallbacks().append(1)

    assert EstimatorParams().getCallbacks() == []


def test_output_columns_follow_the_labels():
    params = ModelParams().setLabelColoumns(["a", "b"])

    assert params.output_columns() == params.getOutputCols() == ["a__output", "b__output"]
    assert params.setOutputCols(["x", "y"]).output_columns() == params.getOutputCols() == ["x", "y"]
    assert ModelParams().getOutputCols() is None


def _estimator(tmp_path, **options):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD([{"params": [model.weight], "lr": 0.1}, {"params": [model.bias], "lr": 0.2}])
    return TorchEstimator(
        store=Store.create(str(tmp_path / "store")),
        model=model,
        optimizer=optimizer,
        loss=lambda output, label: (output - label).abs().mean(),
        feature_cols=["x"],
        label_cols=["y"],
        epochs=3,
        **options,
    )


def test_an_estimator_is_saved_and_loaded(tmp_path):
    estimator = _estimator(tmp_path)
    path = str(tmp_path / "saved")

    estimator.save(path)
    loaded = TorchEstimator.load(f"file:{path}")

    assert loaded.uid == estimator.uid
    assert (loaded.getEpochs(), loaded.getFeatureCols(), loaded.getStore()) == (3, ["x"], None)
    assert loaded.getLoss()(torch.ones(2), torch.zeros(2)) == 1
    groups = loaded.getOptimizer().param_groups
    assert groups[0]["params"][0] is loaded.getModel().weight
    assert [group["lr"] for group in groups] == [0.1, 0.2]
    metadata = json.loads((tmp_path / "saved/metadata/part-00000").read_text())
    assert metadata["class"] == "horovod.spark.torch.estimator.TorchEstimator"
    assert metadata["paramMap"]["epochs"] == 3


def test_saving_over_something_must_be_asked_for(tmp_path):
    estimator = _estimator(tmp_path)
    path = str(tmp_path / "saved")
    estimator.save(path)

    with pytest.raises(FileExistsError, match="overwrite"):
        estimator.save(path)
    estimator.setEpochs(5).write().overwrite().save(path)

    assert TorchEstimator.load(path).getEpochs() == 5


def test_loading_something_else_is_an_error(tmp_path):
    _estimator(tmp_path).save(str(tmp_path / "saved"))

    with pytest.raises(ValueError, match=r"not a horovod\.spark\.torch\.estimator\.TorchModel"):
        TorchModel.load(str(tmp_path / "saved"))
    with pytest.raises(FileNotFoundError, match="holds no saved TorchModel"):
        TorchModel.load(str(tmp_path))


def test_a_copy_has_other_parameters(tmp_path):
    estimator = _estimator(tmp_path)

    changed = estimator.copy({estimator.epochs: 9})

    assert (changed.getEpochs(), estimator.getEpochs()) == (9, 3)
    assert changed.getModel() is estimator.getModel()


def test_old_programs_get_parameters_as_text():
    for name in (EstimatorParams.backend.name, EstimatorParams.store.name):
        assert _torch_param_serialize(name, "of a session") is None
    assert _torch_param_serialize("epochs", None) is None
    assert codec.loads_base64(_torch_param_serialize("epochs", 3)) == 3

    assert keras_util._serialize_param_value("store", "of a session", None, None) is None
    assert keras_util._serialize_param_value("model", "a", str.upper, None) == "A"
    assert keras_util._serialize_param_value("optimizer", "b", None, str.upper) == "B"
    assert codec.loads_base64(keras_util._serialize_param_value("epochs", 3, None, None)) == 3


def test_old_programs_make_compact_vectors_dense(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(convert_to_tensor=np.asarray))

    dense = keras_util._custom_sparse_to_dense_fn()([2.0, 1.0, 3.0, 10.0, 30.0, 0.0, 0.0], 5)

    assert dense.tolist() == [[0.0, 10.0, 0.0, 30.0, 0.0]]
