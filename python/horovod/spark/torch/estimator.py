"""TorchEstimator and TorchModel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from pyspark import keyword_only

from horovod.spark.common import util
from horovod.spark.common._columns import Array
from horovod.spark.common._job import job_of
from horovod.spark.common._param_table import Row, to_list, with_params
from horovod.spark.common._predict import Predictor
from horovod.spark.common.backend import Backend
from horovod.spark.common.estimator import HorovodEstimator, HorovodModel
from horovod.spark.common.params import EstimatorParams
from horovod.spark.common.serialization import as_text

from ._packing import pack, trained_copy, unpack
from ._shapes import reshaped
from .datamodule import TorchParquetDataModule
from .remote import TorchJob, train

__all__ = ["EstimatorParams", "TorchEstimator", "TorchModel"]

_torch_param_serialize = as_text  # programs for the original import it from here

_ESTIMATOR_ROWS = (
    Row("data_module", "class that reads the data, a DataModule"),
    Row("input_shapes", "shape of each feature, -1 for the rows of a batch", None, to_list),
    Row("loss_constructors", "what makes the loss functions on ranks, where they cannot be pickled"),
    Row("train_minibatch_fn", "function that makes one step, see remote.train_minibatch"),
)
_MODEL_ROWS = (
    Row("optimizer", "the optimizer with its state"),
    Row("input_shapes", "shape of each feature", None, to_list),
    Row("loss", "loss function"),
    Row("loss_constructors", "what makes the loss functions"),
)


@with_params(_ESTIMATOR_ROWS)
class TorchEstimator(HorovodEstimator):
    """Trains a torch.nn.Module on a DataFrame; `fit` returns a TorchModel.

    The model is called with one float tensor per feature column; it returns one output per label, a tuple if
    there are several. The learning rate is multiplied by the number of processes.
    """

    _run_prefix = "pytorch"

    @keyword_only
    def __init__(
        self,
        *,
        num_proc: int | None = None,
        data_module: Any = None,
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
        label_cols: Any = None,
        continuous_cols: Any = None,
        categorical_cols: Any = None,
        validation: Any = None,
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
        use_gpu: bool = True,
        mp_start_method: str | None = None,
        backward_passes_per_step: int = 1,
        compress_sparse_cols: bool = False,
    ) -> None:
        """See docs/spark-estimators.md for the parameters."""
        super().__init__()
        self.setParams(**self._input_kwargs)
        self._check_losses()
        self._check_passes()

    def setParams(self, **kwargs: Any) -> TorchEstimator:  # noqa: N802 - name of Spark
        """Set several parameters; None leaves one as it is."""
        self._set(**kwargs)
        return self

    def _check_model(self) -> None:
        super()._check_model()
        if not isinstance(self.getModel(), torch.nn.Module):
            message = f"model must be a torch.nn.Module, got {type(self.getModel()).__name__}"
            raise ValueError(message)  # noqa: TRY004 - what programs expect
        if self.getOptimizer() is None:
            message = "TorchEstimator needs an optimizer: give optimizer=..."
            raise ValueError(message)
        if self.getLoss() is None and self.getLossConstructors() is None:
            message = "give either loss or loss_constructors"
            raise ValueError(message)
        self._check_losses()
        self._check_passes()

    def _check_losses(self) -> None:
        if self.getLoss() is not None and self.getLossConstructors() is not None:
            message = "give either loss or loss_constructors, not both"
            raise ValueError(message)

    def _check_passes(self) -> None:
        if self.getBackwardPassesPerStep() <= 0:
            message = f"backward_passes_per_step must be positive, got {self.getBackwardPassesPerStep()}"
            raise ValueError(message)

    def _load_checkpoint(self, run_id: str) -> bytes:
        return bytes(self.getStore().read(self.getStore().get_checkpoint_path(run_id)))

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
        features, labels = self._features(metadata), self.getLabelCols()
        util.check_shape_compatibility(
            metadata, features, labels, input_shapes=self.getInputShapes(), label_shapes=self.getLabelShapes()
        )
        run_id = self._run_id()
        module = self.getDataModule() or TorchParquetDataModule
        common = job_of(self, train_rows, val_rows, metadata, run_id, dataset_idx, module)
        common.reader.setdefault("dtype", np.float32)
        job = TorchJob(
            common=common,
            packed=pack(self.getModel(), self.getOptimizer()),
            checkpoint=self._load_checkpoint(run_id) if self._has_checkpoint(run_id) else None,
            input_shapes=self.getInputShapes(),
            label_shapes=self.getLabelShapes(),
            loss=self.getLoss(),
            loss_constructors=self.getLossConstructors(),
            loss_weights=self.getLossWeights(),
            metrics=self.getMetrics(),
            compression=self.getGradientCompression(),
            backward_passes_per_step=self.getBackwardPassesPerStep(),
            train_minibatch_fn=self.getTrainMinibatchFn(),
        )
        result = backend.run(train, args=(job,), env={})[0]
        model, optimizer = trained_copy(self.getModel(), self.getOptimizer(), result.checkpoint)
        return self.get_model_class()(
            history=result.history,
            model=model,
            feature_columns=features,
            input_shapes=self.getInputShapes(),
            label_columns=list(labels),
            optimizer=optimizer,
            run_id=run_id,
            _metadata=metadata,
            loss=self.getLoss(),
            loss_constructors=self.getLossConstructors(),
        )

    def get_model_class(self) -> Any:
        """Return the class of what `fit` returns; override it to return a model of your own."""
        return TorchModel


@dataclass(frozen=True, slots=True)
class TorchPredictor(Predictor):
    """A model as bytes, and the shapes of its inputs."""

    packed: bytes
    feature_columns: list[str]
    input_shapes: Sequence[Sequence[int]] | None

    def load(self) -> Callable[[list[Array]], list[Array]]:
        """Return the forward pass on the CPU."""
        model = unpack(self.packed)[0].cpu().eval()
        shapes = self.input_shapes or [None] * len(self.feature_columns)  # type: ignore[list-item]

        def predict(features: list[Array]) -> list[Array]:
            with torch.no_grad():
                inputs = [
                    reshaped(name, torch.from_numpy(np.ascontiguousarray(rows, np.float32)), shape)
                    for name, rows, shape in zip(self.feature_columns, features, shapes, strict=True)
                ]
                outputs = model(*inputs)
            listed = outputs if isinstance(outputs, (tuple, list)) else [outputs]
            return [output.numpy().reshape(len(features[0]), -1) for output in listed]

        return predict


@with_params(_MODEL_ROWS)
class TorchModel(HorovodModel):
    """A trained PyTorch model that adds predictions to DataFrames."""

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

    def _predictor(self) -> TorchPredictor:
        return TorchPredictor(
            pack(self.getModel(), None), list(self.getFeatureColumns()), self.getInputShapes()
        )
