"""The training of a Keras model on one rank. Keras is imported when its backend has been chosen."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np

from horovod.spark.common._job import TrainingJob, endless
from horovod.spark.common._run_log import RunFiles
from horovod.spark.common.datamodule import DataModule

from . import _packing
from ._devices import choose_devices, device_scope
from ._flavor import Flavor

OPTIMIZER_SUFFIX = ".optimizer.npz"


@dataclass(frozen=True, slots=True)
class KerasJob:
    """What a rank is told beyond the common part.

    `pickled` holds what may be objects of Keras: a dictionary with optimizer, loss, metrics, callbacks and
    others, which can be read only when the backend has been chosen.
    """

    common: TrainingJob
    flavor: Flavor
    floatx: str
    model: bytes
    pickled: bytes
    optimizer_values: bytes | None
    loss_weights: Sequence[float] | None
    label_shapes: Sequence[Sequence[int]] | None


@dataclass(frozen=True, slots=True)
class Trained:
    """What rank 0 gives back; the learning rate of the optimizer is that of one process again."""

    history: dict[str, list[float]]
    model: bytes
    optimizer: _packing.PackedOptimizer


def train(job: KerasJob) -> Trained | None:
    """Train on this rank; rank 0 returns the result. Runs in a process of its own."""
    keras, hvd = job.flavor.keras(), job.flavor.horovod()
    hvd.init()
    try:
        job.common.prepare_process(hvd.rank())
        choose_devices(job.flavor, hvd.local_rank(), use_gpu=job.common.use_gpu)
        keras.backend.set_floatx(job.floatx)
        if job.common.random_seed is not None:
            keras.utils.set_random_seed(job.common.random_seed)
        with device_scope(keras, job.flavor, use_gpu=job.common.use_gpu):
            return _train(job, keras, hvd)
    finally:
        hvd.shutdown()


def _train(job: KerasJob, keras: Any, hvd: Any) -> Trained | None:
    common, extra = job.common, cloudpickle.loads(job.pickled)
    custom = extra["custom_objects"]
    model = _packing.unpack_model(keras, job.model, custom)
    optimizer = _packing.unpack_optimizer(keras, extra["optimizer"], custom, model.trainable_variables)
    base_rate = _packing.fixed_rate(optimizer)
    if job.optimizer_values is not None:
        _packing.restore_optimizer(
            optimizer, _packing.unpack_values(job.optimizer_values), model.trainable_variables
        )
    if base_rate is not None:
        _packing.set_rate(optimizer, base_rate * hvd.size())
    compression = {"compression": extra["compression"]} if extra["compression"] is not None else {}
    model.compile(
        optimizer=hvd.DistributedOptimizer(optimizer, **compression),
        loss=extra["loss"],
        loss_weights=list(job.loss_weights) if job.loss_weights else None,
        metrics=extra["metrics"] or None,
    )
    with (
        common.open_data(hvd.rank(), hvd.size(), round_up=True) as data,
        RunFiles.on_rank(hvd.rank(), common.store) as files,
        tempfile.TemporaryDirectory() as folder,
    ):
        chosen = _UserCheckpoint(extra["checkpoint_callback"], Path(folder)) if hvd.rank() == 0 else None
        plain = _packing.unpack_model(keras, job.model, custom) if files is not None else None
        callbacks = _callbacks(hvd, extra["callbacks"], base_rate)
        callbacks += chosen.callbacks() if chosen is not None else []
        if files is not None:
            callbacks.append(_saver(keras, files, plain, common.store.checkpoint_filename))
        history = _fit(job, hvd, model, data, callbacks)
        if hvd.rank() != 0:
            return None
        if chosen is not None:
            chosen.restore(keras, model, custom)
        packed = _packing.pack_optimizer(keras, model.optimizer, divide_rate_by=hvd.size())
        return Trained(history, _packing.pack_model(model), packed)


def _callbacks(hvd: Any, users: Sequence[Any], base_rate: float | None) -> list[Any]:
    for callback in users:
        if base_rate is not None and hasattr(callback, "initial_lr"):
            callback.initial_lr = base_rate * hvd.size()
    first = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
    return [*first, *users]


def _fit(job: KerasJob, hvd: Any, model: Any, data: DataModule, callbacks: list[Any]) -> dict[str, Any]:
    common = job.common
    shapes = _input_shapes(model, len(common.feature_columns))
    validation: dict[str, Any] = {}
    if common.has_validation:
        count = (
            data.val_batch_count()
            if hasattr(data, "val_batch_count")
            else common.validation_steps(hvd.size())
        )
        validation["validation_data"] = (_example(job, batch, shapes) for batch in _passes(data.val_data))
        validation["validation_steps"] = min(common.val_steps or count, count)
    result = model.fit(
        (_example(job, batch, shapes) for batch in endless(data.train_data())),
        epochs=common.epochs,
        steps_per_epoch=common.steps(hvd.size(), round_up=True),
        callbacks=callbacks,
        verbose=common.verbose if hvd.rank() == 0 else 0,
        **validation,
    )
    return {name: [float(value) for value in values] for name, values in result.history.items()}


def _passes(start: Callable[[], Any]) -> Iterator[Mapping[str, Any]]:
    while True:
        yield from start()


def _input_shapes(model: Any, count: int) -> list[tuple[int | None, ...] | None]:
    """Return the shapes of a row's inputs, as far as the model knows them."""
    inputs = getattr(model, "inputs", None)
    if not inputs:
        return [None] * count
    if len(inputs) != count:
        message = f"the model has {len(inputs)} inputs for {count} feature columns: they must be as many"
        raise ValueError(message)
    return [tuple(each.shape[1:]) for each in inputs]


def reshaped(rows: Any, shape: Sequence[int | None] | None) -> Any:
    """Return a batch in the shape of an input; one dimension of the shape may be open."""
    if shape is None or tuple(rows.shape[1:]) == tuple(shape):
        return rows
    open_places = [place for place, size in enumerate(shape) if size is None]
    if len(open_places) > 1:
        return rows
    return np.reshape(rows, (len(rows), *(-1 if size is None else size for size in shape)))


def _example(job: KerasJob, batch: Mapping[str, Any], shapes: Sequence[Any]) -> tuple[Any, ...]:
    common = job.common
    inputs = [
        reshaped(batch[name], shape) for name, shape in zip(common.feature_columns, shapes, strict=True)
    ]
    labels = [batch[name] for name in common.label_columns]
    if job.label_shapes:
        labels = [
            np.reshape(label, (len(label), *[size for size in shape if size != -1]))
            for label, shape in zip(labels, job.label_shapes, strict=True)
        ]
    example = (_one_or_tuple(inputs), _one_or_tuple(labels))
    if common.sample_weight_col is None:
        return example
    weights = batch[common.sample_weight_col]
    return (*example, _one_or_tuple([weights] * len(labels)))


def _one_or_tuple(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


class _UserCheckpoint:
    """The user's ModelCheckpoint, which decides which state is returned: the best, for instance."""

    def __init__(self, callback: Any, folder: Path) -> None:
        self._callback = callback
        if callback is not None:
            self._weights_only = bool(getattr(callback, "save_weights_only", False))
            self._path = folder / ("checkpoint.weights.h5" if self._weights_only else "checkpoint.keras")
            callback.filepath = str(self._path)

    def callbacks(self) -> list[Any]:
        return [] if self._callback is None else [self._callback]

    def restore(self, keras: Any, model: Any, custom_objects: Any) -> None:
        if self._callback is None or not self._path.exists():
            return
        if self._weights_only:
            model.load_weights(str(self._path))
        else:
            saved = _packing.unpack_model(keras, self._path.read_bytes(), custom_objects)
            model.set_weights(saved.get_weights())


def _saver(keras: Any, files: RunFiles, plain: Any, name: str) -> Any:
    """Return a callback that keeps model, optimizer and metrics after each epoch, in the store."""

    class Saver(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            plain.set_weights(self.model.get_weights())
            packed = _packing.pack_optimizer(keras, self.model.optimizer)
            files.write(f"{name}{OPTIMIZER_SUFFIX}", _packing.pack_values(packed.values))
            metrics = {key: float(value) for key, value in (logs or {}).items()}
            files.epoch({"epoch": epoch, **metrics}, _packing.pack_model(plain))

    return Saver()
