"""KerasEstimator and KerasModel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
from pyspark import keyword_only

from horovod.spark.common._columns import Array
from horovod.spark.common._job import job_of
from horovod.spark.common._param_table import Row, to_string, with_params
from horovod.spark.common._predict import Predictor
from horovod.spark.common.backend import Backend
from horovod.spark.common.estimator import HorovodEstimator, HorovodModel
from horovod.spark.common.params import EstimatorParams

from . import _packing
from ._flavor import Flavor, flavor_of
from .datamodule import KerasParquetDataModule
from .remote import OPTIMIZER_SUFFIX, KerasJob, Trained, reshaped, train

__all__ = ["EstimatorParams", "KerasEstimator", "KerasModel"]

# What the client of HDFS needs, in each process.
_BACKEND_ENV = {"LIBHDFS_OPTS": "-Xms2048m -Xmx2048m"}

_ESTIMATOR_ROWS = (
    Row("custom_objects", "classes and functions by name, which the model needs to be loaded", {}),
    Row("checkpoint_callback", "a ModelCheckpoint that decides which state is returned"),
    Row("data_module", "class that reads the data, a DataModule"),
    Row("backend_env", "environment of the processes, where no backend is given", _BACKEND_ENV),
)
_MODEL_ROWS = (
    Row("custom_objects", "classes and functions by name, which the model needs to be loaded", {}),
    Row("_floatx", "the default type of floats", None, to_string, has_setter=False),
)


@with_params(_ESTIMATOR_ROWS)
class KerasEstimator(HorovodEstimator):
    """Trains a Keras model on a DataFrame; `fit` returns a KerasModel.

    Feature columns are the inputs of the model, in its order and shapes. The learning rate is multiplied by
    the number of processes, and divided again in the model that is returned.
    """

    _run_prefix = "keras"

    @keyword_only
    def __init__(
        self,
        *,
        num_proc: int | None = None,
        data_module: Any = None,
        model: Any = None,
        backend: Backend | None = None,
        store: Any = None,
        custom_objects: dict[str, Any] | None = None,
        optimizer: Any = None,
        loss: Any = None,
        loss_weights: Any = None,
        sample_weight_col: str | None = None,
        gradient_compression: Any = None,
        metrics: Any = None,
        feature_cols: Any = None,
        label_cols: Any = None,
        continuous_cols: Any = None,
        categorical_cols: Any = None,
        validation: Any = None,
        callbacks: Any = None,
        batch_size: int | None = None,
        val_batch_size: int | None = None,
        epochs: int | None = None,
        verbose: int | None = None,
        random_seed: int | None = None,
        shuffle_buffer_size: int | None = None,
        shuffle: bool = True,
        partitions_per_process: int | None = None,
        run_id: str | None = None,
        train_steps_per_epoch: int | None = None,
        validation_steps_per_epoch: int | None = None,
        transformation_fn: Any = None,
        transformation_edit_fields: Any = None,
        transformation_removed_fields: Any = None,
        train_reader_num_workers: int | None = None,
        val_reader_num_workers: int | None = None,
        reader_pool_type: str = "thread",
        label_shapes: Any = None,
        checkpoint_callback: Any = None,
        inmemory_cache_all: bool = False,
        backend_env: dict[str, str] | None = None,
        use_gpu: bool = True,
        mp_start_method: str | None = None,
        tensorflow_dataset_prefetch_buffer_size: int = 0,
        compress_sparse_cols: bool = False,
    ) -> None:
        """See docs/spark-estimators.md for the parameters."""
        super().__init__()
        self.setParams(**self._input_kwargs)

    def setParams(self, **kwargs: Any) -> KerasEstimator:  # noqa: N802 - name of Spark
        """Set several parameters; None leaves one as it is."""
        self._set(**kwargs)
        return self

    def _backend_env(self) -> dict[str, str]:
        return dict(self.getBackendEnv())

    def _check_model(self) -> None:
        super()._check_model()
        flavor_of(self.getModel())
        if self.getLoss() is None:
            message = "loss is required: give loss=..."
            raise ValueError(message)
        if self._chosen_optimizer() is None:
            message = "optimizer is required: give optimizer=..., or a model that is compiled"
            raise ValueError(message)

    def _chosen_optimizer(self) -> Any:
        return self.getOptimizer() or getattr(self.getModel(), "optimizer", None)

    def _load_model_from_checkpoint(self, run_id: str) -> bytes:
        return bytes(self.getStore().read(self.getStore().get_checkpoint_path(run_id)))

    def _load_optimizer_values(self, run_id: str) -> bytes | None:
        store = self.getStore()
        path = f"{store.get_checkpoint_path(run_id)}{OPTIMIZER_SUFFIX}"
        return bytes(store.read(path)) if store.exists(path) else None

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
        run_id = self._run_id()
        flavor = flavor_of(self.getModel())
        keras = flavor.keras()
        module = self.getDataModule() or KerasParquetDataModule
        common = job_of(self, train_rows, val_rows, metadata, run_id, dataset_idx, module)
        common.reader.setdefault("float_dtype", np.dtype(keras.backend.floatx()))
        resumes = self._has_checkpoint(run_id)
        job = KerasJob(
            common=common,
            flavor=flavor,
            floatx=keras.backend.floatx(),
            model=self._load_model_from_checkpoint(run_id)
            if resumes
            else _packing.pack_model(self.getModel()),
            pickled=self._pickled(keras),
            optimizer_values=self._load_optimizer_values(run_id) if resumes else None,
            loss_weights=self.getLossWeights(),
            label_shapes=self.getLabelShapes(),
        )
        result = backend.run(train, args=(job,), env=flavor.environment())[0]
        return self.get_model_class()(
            history=result.history,
            model=self._trained_model(keras, result),
            feature_columns=self._features(metadata),
            label_columns=list(self.getLabelCols()),
            custom_objects=self.getCustomObjects(),
            run_id=run_id,
            _metadata=metadata,
            _floatx=keras.backend.floatx(),
        )

    def _pickled(self, keras: Any) -> bytes:
        packed: bytes = cloudpickle.dumps(
            {
                "custom_objects": self.getCustomObjects(),
                "optimizer": _packing.pack_optimizer(keras, keras.optimizers.get(self._chosen_optimizer())),
                "loss": self.getLoss(),
                "metrics": self.getMetrics(),
                "callbacks": self.getCallbacks(),
                "checkpoint_callback": self.getCheckpointCallback(),
                "compression": self.getGradientCompression(),
            }
        )
        return packed

    def _trained_model(self, keras: Any, result: Trained) -> Any:
        model = _packing.unpack_model(keras, result.model, self.getCustomObjects())
        optimizer = _packing.unpack_optimizer(
            keras, result.optimizer, self.getCustomObjects(), model.trainable_variables
        )
        loss = self.getLoss()
        model.compile(
            optimizer=optimizer, loss=loss, loss_weights=self.getLossWeights(), metrics=self.getMetrics()
        )
        return model

    def get_model_class(self) -> Any:
        """Return the class of what `fit` returns; override it to return a model of your own."""
        return KerasModel

    def pack_param(self, name: str, value: Any) -> Any:
        """Return models and optimizers in a form that can be pickled."""
        return _pack(name, value, self.getCustomObjects())

    def unpack_param(self, name: str, value: Any) -> Any:
        """Return what `pack_param` was given."""
        return _unpack(value)


@dataclass(frozen=True, slots=True)
class _Saved:
    """A model or an optimizer inside of a pickle."""

    flavor: Flavor
    content: Any
    is_model: bool
    custom_objects: bytes


def _pack(name: str, value: Any, custom_objects: dict[str, Any] | None) -> Any:
    objects = cloudpickle.dumps(custom_objects or {})
    if name == "model" and value is not None:
        return _Saved(flavor_of(value), _packing.pack_model(value), is_model=True, custom_objects=objects)
    if name == "optimizer" and value is not None:
        module = type(value).__module__.split(".")[0]
        flavor = _flavor_of_optimizer(module)
        content = _packing.pack_optimizer(flavor.keras(), value)
        return _Saved(flavor, content, is_model=False, custom_objects=objects)
    return value


def _flavor_of_optimizer(module: str) -> Flavor:
    if module == "tf_keras":
        return Flavor("tf_keras", None)
    import keras  # noqa: PLC0415 - it has been, by the optimizer

    return Flavor("keras", keras.backend.backend() if int(keras.__version__.split(".")[0]) > 2 else None)  # noqa: PLR2004


def _unpack(value: Any) -> Any:
    if not isinstance(value, _Saved):
        return value
    keras = value.flavor.keras()
    custom_objects = cloudpickle.loads(value.custom_objects)
    if value.is_model:
        return _packing.unpack_model(keras, value.content, custom_objects)
    return _packing.unpack_optimizer(keras, value.content, custom_objects, ())


@dataclass(frozen=True, slots=True)
class KerasPredictor(Predictor):
    """A model as bytes. Custom objects are pickled, for they may need Keras to be read."""

    flavor: Flavor
    model: bytes
    custom_objects: bytes
    floatx: str | None

    def load(self) -> Callable[[list[Array]], list[Array]]:
        """Return the forward pass."""
        keras = self.flavor.keras()
        if self.floatx:
            keras.backend.set_floatx(self.floatx)
        model = _packing.unpack_model(keras, self.model, cloudpickle.loads(self.custom_objects))
        inputs = getattr(model, "inputs", None)
        shapes: list[Any] | None = [tuple(each.shape[1:]) for each in inputs] if inputs else None

        def predict(features: list[Array]) -> list[Array]:
            rows = [reshaped(f, s) for f, s in zip(features, shapes or [None] * len(features), strict=True)]
            outputs = model.predict_on_batch(rows[0] if len(rows) == 1 else rows)
            listed = outputs if isinstance(outputs, (tuple, list)) else [outputs]
            return [np.asarray(output).reshape(len(features[0]), -1) for output in listed]

        return predict


@with_params(_MODEL_ROWS)
class KerasModel(HorovodModel):
    """A trained Keras model that adds predictions to DataFrames."""

    @keyword_only
    def __init__(
        self,
        *,
        history: Any = None,
        model: Any = None,
        feature_columns: Any = None,
        label_columns: Any = None,
        custom_objects: dict[str, Any] | None = None,
        run_id: str | None = None,
        _metadata: Any = None,
        _floatx: str | None = None,
    ) -> None:
        """Made by KerasEstimator.fit, or from a model that was trained elsewhere."""
        super().__init__()
        self.setParams(**self._input_kwargs)

    def setParams(self, **kwargs: Any) -> KerasModel:  # noqa: N802 - name of Spark
        """Set several parameters; None leaves one as it is."""
        self._set(**kwargs)
        return self

    def _predictor(self) -> KerasPredictor:
        model = self.getModel()
        objects = cloudpickle.dumps(self.getCustomObjects() or {})
        return KerasPredictor(
            flavor_of(model), _packing.pack_model(model), objects, self.getOrDefault("_floatx")
        )

    def pack_param(self, name: str, value: Any) -> Any:
        """Return the model in a form that can be pickled."""
        return _pack(name, value, self.getCustomObjects())

    def unpack_param(self, name: str, value: Any) -> Any:
        """Return what `pack_param` was given."""
        return _unpack(value)
