"""Plain modules as Lightning modules: with optimizer and losses from the parameters of the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from horovod.spark.torch._losses import combined_loss
from horovod.spark.torch._shapes import outputs_and_labels

from ._package import packages


def to_lightning_module(
    model: Any,
    optimizer: Any,
    loss_fns: Sequence[Any],
    loss_weights: Sequence[float] | None,
    feature_cols: Sequence[str],
    label_cols: Sequence[str],
    sample_weights_col: str | None = None,
    validation: Any = None,
    label_shapes: Sequence[Sequence[int]] | None = None,
) -> Any:
    """Return a LightningModule that calls `model` with the features and adds up the losses of its outputs."""
    del validation
    loss = combined_loss(loss_fns, loss_weights, by_row=sample_weights_col is not None)

    class Wrapped(packages()[0].LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._model = model
            self._optimizer = optimizer

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return self._model(*args, **kwargs)

        def configure_optimizers(self) -> Any:
            return self._optimizer

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            del batch_idx
            return self._step(batch, "train")

        def validation_step(self, batch: Any, batch_idx: int) -> Any:
            del batch_idx
            return self._step(batch, "val")

        def _step(self, batch: Any, stage: str) -> Any:
            labels = [batch[name].float() for name in label_cols]
            outputs, labels = outputs_and_labels(
                self(*[batch[name].float() for name in feature_cols]), labels, label_shapes
            )
            weights = batch[sample_weights_col] if sample_weights_col else None
            value = self._calculate_loss(outputs, labels, weights)
            self.log(f"{stage}_loss", value)
            return value

        def _calculate_loss(self, outputs: Any, labels: Any, sample_weights: Any = None) -> Any:
            return loss(outputs, labels, sample_weights)

    return Wrapped()
