"""The training of a PyTorch model on one rank."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import horovod.torch as hvd
from horovod.spark.common._gpus import gpu_of_rank
from horovod.spark.common._job import TrainingJob, endless
from horovod.spark.common._run_log import RunFiles

from ._accumulation import GroupedOptimizer
from ._losses import Loss, combined_loss, loss_functions
from ._meters import Meters, metric_groups
from ._packing import load_checkpoint, save_checkpoint, unpack
from ._shapes import outputs_and_labels, reshaped


@dataclass(frozen=True, slots=True)
class TorchJob:
    """What a rank is told besides. `packed`: model and optimizer; `checkpoint`: to continue from."""

    common: TrainingJob
    packed: bytes
    checkpoint: bytes | None
    input_shapes: Sequence[Sequence[int]] | None
    label_shapes: Sequence[Sequence[int]] | None
    loss: Any
    loss_constructors: Any
    loss_weights: Sequence[float] | None
    metrics: Any
    compression: Any
    backward_passes_per_step: int
    train_minibatch_fn: Any


@dataclass(frozen=True, slots=True)
class Trained:
    """What rank 0 gives back."""

    history: list[dict[str, Any]]
    checkpoint: bytes


def train(job: TorchJob) -> Trained | None:
    """Train on this rank; rank 0 returns the result. Runs in a process of its own."""
    hvd.init()
    try:
        job.common.prepare_process(hvd.rank())
        if job.common.random_seed is not None:
            torch.manual_seed(job.common.random_seed)
        return _Training(job).run()
    finally:
        hvd.shutdown()


def train_minibatch(
    model: Any,
    optimizer: Any,
    transform_outputs: Any,
    loss_fn: Any,
    inputs: Any,
    labels: Any,
    sample_weights: Any,
) -> tuple[Any, Any]:
    """Make one step; `train_minibatch_fn` takes the place of this.

    With backward_passes_per_step the optimizer is a GroupedOptimizer, which zeroes and steps once per group.
    """
    optimizer.zero_grad()
    outputs = model(*inputs)
    outputs, labels = transform_outputs(outputs, labels)
    loss = loss_fn(outputs, labels, sample_weights)
    loss.backward()
    optimizer.step()
    return outputs, loss


def choose_device(use_gpu: bool) -> torch.device:
    """Return this rank's device; all ranks must have the same kind."""
    has_gpu = use_gpu and torch.cuda.is_available()
    kinds = hvd.allgather(torch.tensor([int(has_gpu)]), name="estimator.device").tolist()
    if len(set(kinds)) > 1:
        with_gpu = [rank for rank, kind in enumerate(kinds) if kind]
        message = (
            f"all ranks must train on the same kind of device: ranks {with_gpu} have a GPU, the others none; "
            "set use_gpu=False"
        )
        raise RuntimeError(message)
    if not has_gpu:
        return torch.device("cpu")
    return torch.device("cuda", gpu_of_rank(hvd.local_rank(), torch.cuda.device_count()))


class _Training:
    """The loop over epochs on one rank."""

    def __init__(self, job: TorchJob) -> None:
        self.job = job
        self.common = job.common
        self.device = choose_device(self.common.use_gpu)
        labels = self.common.label_columns
        functions = loss_functions(job.loss, job.loss_constructors, len(labels))
        self.loss: Loss = combined_loss(
            functions, job.loss_weights, by_row=self.common.sample_weight_col is not None
        )
        self.groups = metric_groups(job.metrics, len(labels))
        self.step = job.train_minibatch_fn or train_minibatch
        self.model, self.optimizer = self._model_and_optimizer()
        self.grouped = GroupedOptimizer(self.optimizer, job.backward_passes_per_step)

    def _model_and_optimizer(self) -> tuple[Any, Any]:
        model, optimizer = unpack(self.job.packed)
        if self.job.checkpoint is None:
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * hvd.size()
        else:
            state = load_checkpoint(self.job.checkpoint)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])  # with the rate of that training
        # In place, so that the optimizer keeps the parameters; its state is moved by loading it again.
        model.to(self.device)
        optimizer.load_state_dict(optimizer.state_dict())
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        distributed = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=model.named_parameters(),
            compression=self.job.compression or hvd.Compression.none,
            backward_passes_per_step=self.job.backward_passes_per_step,
        )
        return model, distributed

    def run(self) -> Trained | None:
        common = self.common
        history = []
        with (
            common.open_data(hvd.rank(), hvd.size(), round_up=False) as data,
            RunFiles.on_rank(hvd.rank(), common.store) as files,
        ):
            batches = endless(data.train_data())
            for epoch in range(common.epochs):
                metrics: dict[str, Any] = {"epoch": epoch, "train": self._train_epoch(batches)}
                if common.has_validation:
                    metrics["validation"] = self._validate(data.val_data())
                history.append(metrics)
                if files is not None:
                    files.epoch(metrics, save_checkpoint(self.model, self.optimizer))
                if common.verbose and hvd.rank() == 0:
                    print(metrics, flush=True)  # noqa: T201 - what `verbose` asks for
        if hvd.rank() != 0:
            return None
        return Trained(history, save_checkpoint(self.model, self.optimizer))

    def _train_epoch(self, batches: Iterator[Mapping[str, Any]]) -> dict[str, Any]:
        self.model.train()
        meters = Meters(self.groups, self.common.label_columns)
        steps = self.common.steps(hvd.size(), round_up=False)
        has_groups = self.job.backward_passes_per_step > 1
        optimizer = self.grouped if has_groups else self.optimizer
        for index, batch in enumerate(itertools.islice(batches, steps)):
            inputs, labels, weights = self._prepared(batch)
            self.grouped.begin(index, steps)
            outputs, loss = self.step(self.model, optimizer, self._shaped, self.loss, inputs, labels, weights)
            if self.groups:
                outputs, labels = self._shaped(outputs, labels)
            meters.add(loss, outputs, labels, len(inputs[0]))
        return meters.averages("train")

    def _validate(self, batches: Any) -> dict[str, Any]:
        self.model.eval()
        meters = Meters(self.groups, self.common.label_columns)
        with torch.no_grad():
            for batch in itertools.islice(batches, self.common.val_steps):
                inputs, labels, weights = self._prepared(batch)
                outputs, labels = self._shaped(self.model(*inputs), labels)
                meters.add(self.loss(outputs, labels, weights), outputs, labels, len(inputs[0]))
        return meters.averages("validation")

    def _prepared(self, batch: Mapping[str, Any]) -> tuple[list[Any], list[Any], Any]:
        shapes = self.job.input_shapes or [None] * len(self.common.feature_columns)  # type: ignore[list-item]
        inputs = [
            reshaped(name, self._moved(batch[name]), shape)
            for name, shape in zip(self.common.feature_columns, shapes, strict=True)
        ]
        labels = [self._moved(batch[name]) for name in self.common.label_columns]
        weight = self.common.sample_weight_col
        return inputs, labels, self._moved(batch[weight]) if weight else None

    def _moved(self, values: Any) -> torch.Tensor:
        return torch.as_tensor(values).to(self.device, torch.float32, non_blocking=True)

    def _shaped(self, outputs: Any, labels: Any) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        return outputs_and_labels(outputs, labels, self.job.label_shapes)
