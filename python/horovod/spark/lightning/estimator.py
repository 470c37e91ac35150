"""TorchEstimator and TorchModel for modules of Lightning."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
import torch
from pyspark import keyword_only

from horovod.spark.common import util
from horovod.spark.common._columns import Array
from horovod.spark.common._job import job_of
from horovod.spark.common._param_table import Row, to_bool, to_int, to_list, with_params
from horovod.spark.common._predict import Predictor
from horovod.spark.common.backend import Backend
from horovod.spark.common.estimator import HorovodEstimator, HorovodModel
from horovod.spark.common.params import EstimatorParams
from horovod.spark.common.serialization import as_text
from horovod.spark.torch._losses import loss_functions
from horovod.spark.torch._packing import load_checkpoint
from horovod.spark.torch.estimator import TorchPredictor

from ._package import MIN_PL_VERSION, is_lightning_module
from .datamodule import PetastormDataModule
from .legacy import to_lightning_module
from .remote import LightningJob, train

__all__ = ["MIN_PL_VERSION", "EstimatorParams", "TorchEstimator", "TorchModel"]

_torch_param_serialize = as_text  # programs for the original import it from here

_log = logging.getLogger("horovod.spark")

_TRAINER_ARGS = ("accumulate_grad_batches", "gradient_clip_algorithm", "gradient_clip_val")
# What our loop does not do, or does not show, whatever they say: training is the same.
_TRAINER_ARGS_WITHOUT_EFFECT = (
    "enable_model_summary",
    "enable_progress_bar",
    "num_sanity_val_steps",
    "progress_bar_refresh_rate",
    "weights_summary",
)

_ESTIMATOR_ROWS = (
    Row("input_shapes", "shape of each feature, -1 for the rows of a batch", None, to_list),
    Row("loss_constructors", "what makes the loss functions of a plain module"),
    Row("train_minibatch_fn", "not used: the module has training_step"),
    Row("num_gpus", "0: train on the CPU", None, to_int, "NumGPUs"),
    Row("logger", "logger of Lightning; rank 0 logs"),
    Row("log_every_n_steps", "how often single steps are logged", 50, to_int),
    Row("data_module", "class that reads the data, a DataModule"),
    Row("loader_num_epochs", "not used: passes are joined without end", None, to_int),
    Row("terminate_on_nan", "fail when the loss is not a finite number", default=False, converter=to_bool),
    Row("profiler", "not used: our loop has no profiler", has_setter=False),
    Row("trainer_args", f"what our loop knows of a Trainer's arguments: {', '.join(_TRAINER_ARGS)}"),
    Row("debug_data_loader", "not used", default=False, converter=to_bool),
    Row("train_async_data_loader_queue_size", "not used: a thread reads ahead by blocks"),
    Row("val_async_data_loader_queue_size", "not used: a thread reads ahead by blocks"),
)
_MODEL_ROWS = (
    Row("optimizer", "not used"),
    Row("input_shapes", "shape of each feature", None, to_list),
    Row("loss", "not used"),
    Row("loss_constructors", "not used"),
)


@with_params(_ESTIMATOR_ROWS)
class TorchEstimator(HorovodEstimator):
    """Trains a LightningModule on a DataFrame; `fit` returns a TorchModel.

    Optimizer, losses and steps are the module's. A plain torch.nn.Module with `optimizer` and `loss` works.
    """

    _run_prefix = "pytorch"

    @keyword_only
    def __init__(
        self,
        *,
        num_proc: int | None = None,
        model: Any = None,
        backend: Backend | None = None,
        store: Any = None,
        optimizer: Any = None,
        loss: Any = None,
        loss_constructors: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_col: str | None = None,
        gradient_compression: Any = None,
        feature_cols: Any = None,
        input_shapes: Any = None,
        validation: Any = None,
        label_cols: Any = None,
        callbacks: Any = None,
        batch_size: int | None = None,
        val_batch_size: int | None = None,
        epochs: int | None = None,
        verbose: int = 1,
        random_seed: int | None = None,
        shuffle_buffer_size: int | None = None,
        shuffle: bool = True,
        partitions_per_process: int | None = None,
        run_id: str | None = None,
        train_minibatch_fn: Any = None,
        train_steps_per_epoch: int | None = None,
        validation_steps_per_epoch: int | None = None,
        transformation_fn: Any = None,
        transformation_edit_fields: Any = None,
        transformation_removed_fields: Any = None,
        train_reader_num_workers: int | None = None,
        val_reader_num_workers: int | None = None,
        reader_pool_type: str | None = None,
        label_shapes: Any = None,
        inmemory_cache_all: bool = False,
        num_gpus: int | None = None,
        logger: Any = None,
        log_every_n_steps: int = 50,
        data_module: Any = None,
        loader_num_epochs: int | None = None,
        terminate_on_nan: bool = False,
        profiler: Any = None,
        trainer_args: dict[str, Any] | None = None,
        debug_data_loader: bool = False,
        train_async_data_loader_queue_size: Any = None,
        val_async_data_loader_queue_size: Any = None,
        use_gpu: bool = True,
        mp_start_method: str | None = None,
        compress_sparse_cols: bool = False,
    ) -> None:
        """See docs/spark-estimators.md for the parameters."""
        super().__init__()
        self.setParams(**self._input_kwargs)

    def setParams(self, **kwargs: Any) -> TorchEstimator:  # noqa: N802 - name of Spark
        """Set several parameters; None leaves one as it is."""
        self._set(**kwargs)
        return self

    def _check_model(self) -> None:
        super()._check_model()
        model = self.getModel()
        given = [
            name for name in ("optimizer", "loss", "loss_constructors", "loss_weights") if self._given(name)
        ]
        if is_lightning_module(model):
            if given:
                message = f"a LightningModule has its own optimizer and loss: {given} must not be given"
                raise ValueError(message)
        elif not isinstance(model, torch.nn.Module):
            message = f"model must be a LightningModule or a torch.nn.Module, got {type(model).__name__}"
            raise ValueError(message)
        elif "optimizer" not in given or ("loss" in given) == ("loss_constructors" in given):
            message = "a plain torch.nn.Module needs optimizer, and either loss or loss_constructors"
            raise ValueError(message)
        self._check_trainer()

    def _check_removed_fields(self) -> None:
        # The steps of a module take what they want from a batch.
        if not is_lightning_module(self.getModel()):
            super()._check_removed_fields()

    def _given(self, name: str) -> bool:
        return self.getOrDefault(name) is not None

    def _check_trainer(self) -> None:
        known = {*_TRAINER_ARGS, *_TRAINER_ARGS_WITHOUT_EFFECT}
        unknown = sorted(set(self.getTrainerArgs() or {}) - known)
        if unknown:
            message = (
                f"trainer_args {unknown} are not known: the training loop is ours, and has {_TRAINER_ARGS}"
            )
            raise ValueError(message)
        passes = (self.getTrainerArgs() or {}).get("accumulate_grad_batches", 1)
        if not isinstance(passes, int) or passes < 1:
            message = f"trainer_args: accumulate_grad_batches must be a positive number, got {passes!r}"
            raise ValueError(message)
        if self._given("profiler"):
            _log.warning(
                "profiler=%r is left out: the training loop is ours, and has none", self.getProfiler()
            )
        if self.getLogEveryNSteps() < 1:
            message = f"log_every_n_steps must be positive, got {self.getLogEveryNSteps()}"
            raise ValueError(message)

    def _read_checkpoint(self, run_id: str) -> bytes:
        return bytes(self.getStore().read(self.getStore().get_checkpoint_path(run_id)))

    def _module(self, features: list[str]) -> Any:
        model = self.getModel()
        if is_lightning_module(model):
            return model
        labels = list(self.getLabelCols())
        functions = loss_functions(self.getLoss(), self.getLossConstructors(), len(labels))
        weight = self.getSampleWeightCol()
        return to_lightning_module(
            model,
            self.getOptimizer(),
            functions,
            self.getLossWeights(),
            features,
            labels,
            weight,
            label_shapes=self.getLabelShapes(),
        )

    def _fit_on_prepared_data(
        self,
        backend: Backend,
        train_rows: int,
        val_rows: int,
        metadata: dict[str, Any],
        avg_row_size: float,
        dataset_idx: int | None,
    ) -> Any:
        del avg_row_size
        features, labels = self._features(metadata), list(self.getLabelCols())
        util.check_shape_compatibility(
            metadata, features, labels, input_shapes=self.getInputShapes(), label_shapes=self.getLabelShapes()
        )
        run_id = self._run_id()
        module_class = self.getDataModule() or PetastormDataModule
        common = job_of(self, train_rows, val_rows, metadata, run_id, dataset_idx, module_class)
        if self.getNumGPUs() == 0:
            common = replace(common, use_gpu=False)
        common.reader.setdefault("float_dtype", np.float32)
        module = self._module(features)
        job = LightningJob(
            common=common,
            packed=cloudpickle.dumps((module, self.getCallbacks(), self.getLogger())),
            checkpoint=self._read_checkpoint(run_id) if self._has_checkpoint(run_id) else None,
            input_shapes=self.getInputShapes(),
            compression=self.getGradientCompression(),
            log_every_n_steps=self.getLogEveryNSteps(),
            terminate_on_nan=self.getTerminateOnNan(),
            trainer_args=dict(self.getTrainerArgs() or {}),
        )
        result = backend.run(train, args=(job,), env={})[0]
        trained = copy.deepcopy(module)
        trained.load_state_dict(load_checkpoint(result.checkpoint)["model"])
        return self.get_model_class()(
            history=result.history,
            model=trained,
            feature_columns=features,
            input_shapes=self.getInputShapes(),
            label_columns=labels,
            run_id=run_id,
            _metadata=metadata,
        )

    def get_model_class(self) -> Any:
        """Return the class of what `fit` returns; override it to return a model of your own."""
        return TorchModel


@dataclass(frozen=True, slots=True)
class RowPredictor(Predictor):
    """Calls a prediction function of the user with one row at a time."""

    packed: bytes
    feature_columns: list[str]

    def load(self) -> Callable[[list[Array]], list[Array]]:
        """Return the prediction on the CPU."""
        model, function = cloudpickle.loads(self.packed)
        model = model.cpu().eval()

        def predict(features: list[Array]) -> list[Array]:
            rows = [dict(zip(self.feature_columns, row, strict=True)) for row in zip(*features, strict=True)]
            found = [function(model, row) for row in rows]
            listed = [each if isinstance(each, (tuple, list)) else [each] for each in found]
            return [
                np.stack([np.asarray(one).ravel() for one in column]) for column in zip(*listed, strict=True)
            ]

        return predict


@with_params(_MODEL_ROWS)
class TorchModel(HorovodModel):
    """A trained module that adds predictions to DataFrames."""

    @keyword_only
    def __init__(
        self,
        *,
        history: Any = None,
        model: Any = None,
        feature_columns: Any = None,
        input_shapes: Any = None,
        label_columns: Any = None,
        optimizer: Any = None,
        run_id: str | None = None,
        _metadata: Any = None,
        loss: Any = None,
        loss_constructors: Any = None,
    ) -> None:
        """Made by TorchEstimator.fit, or from a model that was trained elsewhere."""
        super().__init__()
        self.setParams(**self._input_kwargs)

    def setParams(self, **kwargs: Any) -> TorchModel:  # noqa: N802 - name of Spark
        """Set several parameters; None leaves one as it is."""
        self._set(**kwargs)
        return self

    def get_prediction_fn(self) -> Callable[[Any, Any], Any]:
        """Return a function from the model and a row to its prediction; override it to predict otherwise."""
        columns, shapes = list(self.getFeatureColumns()), self.getInputShapes()
        return lambda model, row: _predict_row(model, row, columns, shapes)

    def _predictor(self) -> Predictor:
        columns = list(self.getFeatureColumns())
        if type(self).get_prediction_fn is TorchModel.get_prediction_fn:
            return TorchPredictor(cloudpickle.dumps((self.getModel(), None)), columns, self.getInputShapes())
        return RowPredictor(cloudpickle.dumps((self.getModel(), self.get_prediction_fn())), columns)


def _predict_row(model: Any, row: Any, columns: Sequence[str], shapes: Sequence[Sequence[int]] | None) -> Any:
    values = [torch.as_tensor(np.asarray(row[name], np.float32)).unsqueeze(0) for name in columns]
    if shapes:
        values = [value.reshape(tuple(shape)) for value, shape in zip(values, shapes, strict=True)]
    with torch.no_grad():
        return model(*values)
