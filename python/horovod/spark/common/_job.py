"""What every rank is told, whatever the framework: made by the driver, pickled to ranks."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ._balance import steps_in_epoch
from ._remote_store import RemoteStore
from .datamodule import DataModule


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """One training. `data_module` is a class; `reader` are the options of it (see ParquetDataModule)."""

    store: RemoteStore
    run_id: str
    feature_columns: list[str]
    label_columns: list[str]
    sample_weight_col: str | None
    metadata: dict[str, Any]
    train_rows: int
    val_rows: int
    batch_size: int
    val_batch_size: int
    epochs: int
    train_steps: int | None
    val_steps: int | None
    shuffle: bool
    in_memory: bool
    transformation: Any
    data_module: type[DataModule]
    reader: dict[str, Any]
    verbose: int
    random_seed: int | None
    use_gpu: bool
    mp_start_method: str | None

    @property
    def has_validation(self) -> bool:
        """Whether there are rows to validate with."""
        return self.val_rows > 0

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        weight = [self.sample_weight_col] if self.sample_weight_col else []
        return list(dict.fromkeys([*self.feature_columns, *self.label_columns, *weight]))

    def steps(self, size: int, *, round_up: bool) -> int:
        """Return the steps of every rank in an epoch."""
        return self.train_steps or steps_in_epoch(self.train_rows, self.batch_size, size, round_up=round_up)

    def validation_steps(self, size: int) -> int:
        """Return the most steps that any rank needs for its validation rows."""
        return self.val_steps or steps_in_epoch(self.val_rows, self.val_batch_size, size, round_up=True)

    def prepare_process(self, rank: int) -> None:
        """Do what comes before anything else on a rank."""
        self.store.check_reachable(rank)
        if self.mp_start_method:
            multiprocessing.set_start_method(self.mp_start_method, force=True)

    def open_data(self, rank: int, size: int, *, round_up: bool) -> DataModule:
        """Return this rank's data, a context to enter."""
        return self.data_module(
            train_dir=self.store.train_data_path,
            val_dir=self.store.val_data_path if self.has_validation else None,
            num_train_epochs=self.epochs,
            has_val=self.has_validation,
            train_batch_size=self.batch_size,
            val_batch_size=self.val_batch_size,
            shuffle=self.shuffle,
            transform_fn=self.transformation,
            inmemory_cache_all=self.in_memory,
            cur_shard=rank,
            shard_count=size,
            schema_fields=self.columns,
            storage_options=self.store.storage_options,
            steps_per_epoch_train=self.steps(size, round_up=round_up),
            steps_per_epoch_val=self.validation_steps(size) if self.has_validation else 0,
            verbose=self.verbose > 0,
            **self.reader,
        )


def job_of(
    estimator: Any,
    train_rows: int,
    val_rows: int,
    metadata: dict[str, Any],
    run_id: str,
    dataset_idx: int | None,
    data_module: type[DataModule],
) -> TrainingJob:
    """Return what the parameters of an estimator and the data say."""
    features = estimator._features(metadata)  # noqa: SLF001 - the estimators are our callers
    columns = {*features, *estimator.getLabelCols(), estimator.getSampleWeightCol()}
    return TrainingJob(
        store=estimator.getStore().to_remote(run_id, dataset_idx),
        run_id=run_id,
        feature_columns=features,
        label_columns=list(estimator.getLabelCols()),
        sample_weight_col=estimator.getSampleWeightCol(),
        metadata={name: known for name, known in metadata.items() if name in columns},
        train_rows=train_rows,
        val_rows=val_rows,
        batch_size=estimator.getBatchSize(),
        val_batch_size=estimator.getValBatchSize() or estimator.getBatchSize(),
        epochs=estimator.getEpochs(),
        train_steps=estimator.getTrainStepsPerEpoch(),
        val_steps=estimator.getValidationStepsPerEpoch(),
        shuffle=estimator.getShuffle(),
        in_memory=estimator.getInMemoryCacheAll(),
        transformation=estimator.getTransformationFn(),
        data_module=data_module,
        reader=_reader_options(estimator, metadata),
        verbose=estimator.getVerbose(),
        random_seed=estimator.getRandomSeed(),
        use_gpu=estimator.getUseGpu(),
        mp_start_method=estimator.getMpStartMethod(),
    )


def _reader_options(estimator: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": metadata,
        "random_seed": estimator.getRandomSeed(),
        "shuffle_buffer_size": estimator.getShufflingBufferSize(),
        "reader_pool_type": estimator.getReaderPoolType(),
        "train_reader_num_workers": estimator.getTrainReaderNumWorker(),
        "val_reader_num_workers": estimator.getValReaderNumWorker(),
        "transformation_edit_fields": estimator.getTransformationEditFields(),
        "transformation_removed_fields": estimator.getTransformationRemovedFields(),
        "continuous_cols": estimator.getContinuousCols(),
        "categorical_cols": estimator.getCategoricalCols(),
    }


def endless(data: Any) -> Iterator[Mapping[str, Any]]:
    """Return the batches of an iterable again and again; one that has none is an error."""
    while True:
        batch = None
        for batch in data:
            yield batch
        if batch is None:
            message = "the data module's train_data() gave no batch"
            raise ValueError(message)
