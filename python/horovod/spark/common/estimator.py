"""The order of things that all estimators have in common, and the models that they return."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

from pyspark.ml import Estimator, Model

from . import util
from ._predict import Predictor, add_predictions
from .backend import Backend, SparkBackend
from .params import EstimatorParams, ModelParams
from .serialization import HorovodParamsReadable, HorovodParamsWritable
from .store import AbstractFilesystemStore

_POOL_TYPES = ("thread", "process", "dummy")


class HorovodEstimator(Estimator, EstimatorParams, HorovodParamsWritable, HorovodParamsReadable):
    """Trains a model on a DataFrame, with one process per slot of Spark."""

    _run_prefix = "run"

    def fit_on_parquet(self, params: Any = None, dataset_idx: int | None = None) -> Any:
        """Train on Parquet that is in the store already, below its paths for training and validation data."""
        if params:
            return self.copy(params).fit_on_parquet(dataset_idx=dataset_idx)
        self._check_settings()
        store = self.getStore()
        self._check_store(writes_data=False)
        known = util.get_simple_meta_from_parquet(
            store,
            label_columns=self.getLabelCols(),
            feature_columns=self.getFeatureCols(),
            sample_weight_col=self.getSampleWeightCol(),
            dataset_idx=dataset_idx,
        )
        return self._fit_on_prepared_data(self._get_or_create_backend(), *known, dataset_idx)

    def _fit(self, df: Any) -> Any:
        self._check_settings()
        backend = self._get_or_create_backend()
        self._check_store(writes_data=True)
        with util.prepare_data(
            backend.num_processes(),
            self.getStore(),
            df,
            label_columns=self.getLabelCols(),
            feature_columns=self.getFeatureCols(),
            validation=self.getValidation(),
            sample_weight_col=self.getSampleWeightCol(),
            compress_sparse=self.getCompressSparseCols(),
            partitions_per_process=self.getPartitionsPerProcess(),
            verbose=self.getVerbose(),
        ) as dataset_idx:
            known = util.get_dataset_properties(dataset_idx)
            return self._fit_on_prepared_data(backend, *known, dataset_idx)

    def _check_settings(self) -> None:
        """Raise ValueError for parameters that cannot be right whatever the data."""
        if self.getStore() is None:
            message = "an estimator needs a store for its data: give store=Store.create(path)"
            raise ValueError(message)
        if not self.getLabelCols():
            message = "label_cols must name one column at least"
            raise ValueError(message)
        for name in ("batch_size", "epochs", "partitions_per_process"):
            if self.getOrDefault(name) < 1:
                message = f"{name} must be positive, got {self.getOrDefault(name)}"
                raise ValueError(message)
        if self.getReaderPoolType() not in _POOL_TYPES:
            message = f"reader_pool_type must be one of {_POOL_TYPES}, got {self.getReaderPoolType()!r}"
            raise ValueError(message)
        weights, labels = self.getLossWeights(), self.getLabelCols()
        if weights is not None and len(weights) != len(labels):
            message = f"loss_weights has {len(weights)} weights for {len(labels)} labels {labels}"
            raise ValueError(message)
        util.check_validation(self.getValidation())
        self._check_model()

        self._check_removed_fields()

    def _check_removed_fields(self) -> None:
        used = {*(self.getFeatureCols() or ()), *self.getLabelCols(), self.getSampleWeightCol()}
        removed = [name for name in self.getTransformationRemovedFields() or () if name in used]
        if removed:
            message = f"transformation_removed_fields names {removed}, which the model is trained with"
            raise ValueError(message)

    def _check_store(self, *, writes_data: bool) -> None:
        """Raise RuntimeError before any work is done for a store that cannot be written to."""
        store = self.getStore()
        if not isinstance(store, AbstractFilesystemStore):
            return  # one of the user
        folders = [store.get_train_data_path().rpartition("/")[0]] if writes_data else []
        folders += [store.get_runs_path()] if store.saving_runs() else []
        for folder in folders:
            if folder.rpartition("://")[2].strip("/"):  # otherwise the data lies beside all else
                store.check_writable(folder)

    def _check_model(self) -> None:
        if self.getModel() is None:
            message = "an estimator needs a model: give model=..."
            raise ValueError(message)

    def _get_or_create_backend(self) -> Backend:
        backend, num_proc = self.getBackend(), self.getNumProc()
        if backend is not None and num_proc is not None:
            message = (
                'At most one of parameters "backend" and "num_proc" may be specified: '
                "a backend knows its number of processes"
            )
            raise ValueError(message)
        return SparkBackend(num_proc, env=self._backend_env()) if backend is None else backend

    def _backend_env(self) -> dict[str, str] | None:
        return None

    def _run_id(self) -> str:
        return self.getRunId() or f"{self._run_prefix}_{int(time.time())}"

    def _features(self, metadata: dict[str, Any]) -> list[str]:
        return util.all_features(
            list(metadata), self.getFeatureCols(), self.getLabelCols(), self.getSampleWeightCol(), None
        )

    def _has_checkpoint(self, run_id: str) -> bool:
        path = self.getStore().get_checkpoint_path(run_id)
        return path is not None and self.getStore().exists(path)

    @abstractmethod
    def _fit_on_prepared_data(
        self,
        backend: Backend,
        train_rows: int,
        val_rows: int,
        metadata: dict[str, Any],
        avg_row_size: float,
        dataset_idx: int | None,
    ) -> Any:
        """Train on what is in the store, and return the model."""


class HorovodModel(Model, ModelParams, HorovodParamsWritable, HorovodParamsReadable):
    """Adds predictions to a DataFrame, in columns <label>__output unless setOutputCols names others."""

    def transform(self, df: Any, params: Any = None) -> Any:
        """Return the DataFrame with the predictions, which Spark computes when it needs them."""
        return super().transform(df, params)

    def _transform(self, df: Any) -> Any:
        labels, outputs = self.getLabelColumns(), self.output_columns()
        if len(outputs) != len(labels):
            message = f"{len(outputs)} output columns {outputs} for {len(labels)} labels: give one for each"
            raise ValueError(message)
        metadata = self._get_metadata() or {}
        types = [metadata.get(label, {}).get("spark_data_type") for label in labels]
        return add_predictions(df, self._predictor(), self.getFeatureColumns(), outputs, types)

    @abstractmethod
    def _predictor(self) -> Predictor:
        """Return what predicts, in a form that can be sent to executors."""
