"""The parameters of estimators and of the models that they return."""

from __future__ import annotations

from typing import Any

from ._param_table import (
    Row,
    TableParams,
    to_bool,
    to_floats,
    to_int,
    to_list,
    to_string,
    to_strings,
    with_params,
)

ESTIMATOR_ROWS = (
    Row("num_proc", "number of processes; not together with backend", None, to_int),
    Row(
        "train_reader_num_workers", "1: decode training data in one thread", 2, to_int, "TrainReaderNumWorker"
    ),
    Row("val_reader_num_workers", "1: decode validation data in one thread", 2, to_int, "ValReaderNumWorker"),
    Row(
        "reader_pool_type",
        "'dummy' reads in the training thread; 'thread' and 'process' read ahead",
        "thread",
    ),
    Row("optimizer", "optimizer of the framework"),
    Row("model", "model of the framework"),
    Row("backend", "who starts the processes; default SparkBackend"),
    Row("store", "where intermediate data, checkpoints and logs are"),
    Row("metrics", "metrics to compute", []),
    Row("loss", "loss function"),
    Row("gradient_compression", "compression of gradients, one of hvd.Compression"),
    Row("loss_weights", "weight of each label's loss", None, to_floats),
    Row("sample_weight_col", "column with the weights of rows", None, to_string),
    Row("compress_sparse_cols", "store sparse vectors compactly", default=False, converter=to_bool),
    Row("feature_cols", "columns of the features; default all others", None, to_strings),
    Row("label_cols", "columns of the labels", None, to_strings),
    Row("continuous_cols", "continuous columns, for data modules that tell them apart", None, to_strings),
    Row("categorical_cols", "categorical columns, for data modules that tell them apart", None, to_strings),
    Row("validation", "share of the rows in [0, 1), or a column that is true or above 0 for them"),
    Row("callbacks", "callbacks of the framework", []),
    Row("batch_size", "rows of a batch on each process", 32, to_int),
    Row("val_batch_size", "the same for validation; default batch_size", None, to_int),
    Row("epochs", "number of epochs", 1, to_int),
    Row("verbose", "0: silent, 1: the epochs, 2: more", 1, to_int),
    Row("random_seed", "seed of shuffling and of the framework", None, to_int),
    Row("shuffle_buffer_size", "rows that are permuted together", None, to_int, "ShufflingBufferSize"),
    Row("shuffle", "change the order of rows in each epoch", default=True, converter=to_bool),
    Row("partitions_per_process", "files of intermediate data for each process", 10, to_int),
    Row("run_id", "name of the run; one that has a checkpoint continues from it", None, to_string),
    Row("train_steps_per_epoch", "steps in an epoch; default by the number of rows", None, to_int),
    Row("validation_steps_per_epoch", "steps of a validation; default all rows", None, to_int),
    Row("transformation_fn", "function from a pandas DataFrame to one, applied to what is read"),
    Row("transformation_edit_fields", "(name, dtype, shape, nullable) of changed columns", None, to_list),
    Row("transformation_removed_fields", "columns that are dropped after the transformation", None, to_list),
    Row("label_shapes", "shape of each label", None),
    Row("inmemory_cache_all", "keep the rows of a process in memory", False, to_bool, "InMemoryCacheAll"),
    Row("use_gpu", "train on GPUs where there are some", default=True, converter=to_bool),
    Row("mp_start_method", "start method of multiprocessing in the processes", None, to_string),
    Row("backward_passes_per_step", "batches whose gradients are added before they are exchanged", 1, to_int),
    Row("tensorflow_dataset_prefetch_buffer_size", "0 or more; Arrow reads ahead already", 0, to_int),
)

MODEL_ROWS = (
    Row("history", "metrics of the epochs"),
    Row("model", "the trained model"),
    Row("feature_columns", "columns of the features", None, to_strings),
    Row("label_columns", "columns of the labels", None, to_strings, has_setter=False),
    Row("outputCols", "columns of the predictions", None, to_strings, "OutputCols"),
    Row("run_id", "name of the run", None, to_string),
    Row("_metadata", "what is known of the columns", None, has_setter=False),
)


@with_params(ESTIMATOR_ROWS)
class EstimatorParams(TableParams):
    """Parameters that all estimators have."""

    def _check_params(self, metadata: Any) -> None:
        """Raise ValueError where parameters and the columns of the data do not fit together."""


@with_params(MODEL_ROWS)
class ModelParams(TableParams):
    """Parameters that all models have."""

    def setLabelColoumns(self, value: Any) -> Any:  # noqa: N802 - the spelling that programs use
        """Set label_columns."""
        return self._set(label_columns=value)

    def setLabelColumns(self, value: Any) -> Any:  # noqa: N802 - beside its setter's old spelling
        """Set label_columns."""
        return self._set(label_columns=value)

    def _get_metadata(self) -> Any:
        return self.getOrDefault("_metadata")

    def getOutputCols(self) -> list[str] | None:  # noqa: N802 - Spark's way of naming
        """Return outputCols: <label>__output unless they were set; None where labels are not known."""
        given = self.getOrDefault("outputCols")
        if given:
            return list(given)
        labels = self.getOrDefault("label_columns")
        return [f"{label}__output" for label in labels] if labels else None

    def output_columns(self) -> list[str]:
        """Return the columns of the predictions."""
        return self.getOutputCols() or []
