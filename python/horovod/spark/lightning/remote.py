"""The training of a Lightning module on one rank: our loop, the module's steps and hooks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import torch

import horovod.torch as hvd
from horovod.spark.common._job import TrainingJob, endless
from horovod.spark.common._run_log import RunFiles
from horovod.spark.torch._meters import as_float
from horovod.spark.torch._packing import load_checkpoint, save_checkpoint
from horovod.spark.torch._shapes import reshaped
from horovod.spark.torch.remote import Trained, choose_device

from ._optimizers import Scheduled, parse, restore, scale_rates, states_of
from ._trainer import LoopTrainer, StepLog


@dataclass(frozen=True, slots=True)
class LightningJob:
    """What a rank is told besides. `packed`: module, callbacks and logger, pickled together."""

    common: TrainingJob
    packed: bytes
    checkpoint: bytes | None
    input_shapes: Sequence[Sequence[int]] | None
    compression: Any
    log_every_n_steps: int
    terminate_on_nan: bool
    trainer_args: dict[str, Any] = field(default_factory=dict)


def train(job: LightningJob) -> Trained | None:
    """Train on this rank; rank 0 returns the result. Runs in a process of its own."""
    hvd.init()
    try:
        job.common.prepare_process(hvd.rank())
        if job.common.random_seed is not None:
            torch.manual_seed(job.common.random_seed)
        return _Training(job).run()
    finally:
        hvd.shutdown()


class _Training:
    """The loop over epochs on one rank."""

    def __init__(self, job: LightningJob) -> None:
        self.job = job
        self.common = job.common
        self.device = choose_device(self.common.use_gpu)
        self.module, callbacks, logger = cloudpickle.loads(job.packed)
        self.module.to(self.device)
        self.trainer = LoopTrainer(callbacks, logger if hvd.rank() == 0 else None, self.common.epochs)
        self.steps_log = StepLog()
        # Instead of methods that ask a Trainer for much that our loop does not have.
        self.module.log, self.module.log_dict = self.steps_log.log, self.steps_log.log_dict
        self.module._trainer = self.trainer  # noqa: SLF001 - what `module.trainer` returns
        self.schedulers: list[Scheduled] = []
        self.optimizer = self._make_optimizer()

    def _make_optimizer(self) -> Any:
        optimizer, self.schedulers = parse(self.module.configure_optimizers())
        if self.job.checkpoint is None:
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * hvd.size()
            scale_rates(self.schedulers, hvd.size())
        else:
            state = load_checkpoint(self.job.checkpoint)
            self.module.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            if not restore(self.schedulers, state.get("schedulers", ())):
                scale_rates(self.schedulers, hvd.size())
        hvd.broadcast_parameters(self.module.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        return hvd.DistributedOptimizer(
            optimizer,
            named_parameters=self.module.named_parameters(),
            compression=self.job.compression or hvd.Compression.none,
            backward_passes_per_step=self._passes(),
        )

    def _passes(self) -> int:
        return int(self.job.trainer_args.get("accumulate_grad_batches", 1))

    def run(self) -> Trained | None:
        common, history = self.common, []
        with (
            common.open_data(hvd.rank(), hvd.size(), round_up=False) as data,
            RunFiles.on_rank(hvd.rank(), common.store) as files,
        ):
            self._call("setup", "fit")
            self._call("on_fit_start")
            self._call("on_train_start")
            batches = endless(data.train_data())
            for epoch in range(common.epochs):
                metrics = self._epoch(epoch, batches, data)
                history.append(metrics)
                if files is not None:
                    files.epoch(metrics, self._state())
                if common.verbose and hvd.rank() == 0:
                    print(metrics, flush=True)  # noqa: T201 - what `verbose` asks for
                if self.trainer.should_stop:
                    break
            self._call("on_train_end")
            self._call("on_fit_end")
        return Trained(history, self._state()) if hvd.rank() == 0 else None

    def _state(self) -> bytes:
        return save_checkpoint(self.module, self.optimizer, schedulers=states_of(self.schedulers))

    def _call(self, hook: str, *args: Any) -> None:
        self.trainer.call(hook, self.module, *args)

    def _epoch(self, epoch: int, batches: Iterator[Mapping[str, Any]], data: Any) -> dict[str, Any]:
        self.trainer.current_epoch = epoch
        train_loss = self._train_epoch(batches)
        metrics: dict[str, Any] = {
            "epoch": epoch,
            "train": {"loss": train_loss, **self.steps_log.averages("train")},
        }
        self._publish(metrics["train"])
        if self.common.has_validation and _is_overridden(self.module, "validation_step"):
            self._validate(data.val_data())
            metrics["validation"] = self.steps_log.averages("validation")
            self._publish(metrics["validation"])
            self._call("on_validation_end")
        self._call("on_train_epoch_end")
        self._call("on_epoch_end")
        self._publish(self.steps_log.averages("epoch"))
        self._step_schedulers("epoch", epoch + 1)
        return metrics

    def _publish(self, values: Mapping[str, float]) -> None:
        self.trainer.callback_metrics.update({name: torch.tensor(value) for name, value in values.items()})
        if self.trainer.logger is not None and values:
            self.trainer.logger.log_metrics(dict(values), step=self.trainer.global_step)

    def _train_epoch(self, batches: Iterator[Mapping[str, Any]]) -> float:
        self.module.train()
        self._call("on_epoch_start")
        self._call("on_train_epoch_start")
        outputs, total = [], torch.zeros(2, dtype=torch.float64)
        steps = self.common.steps(hvd.size(), round_up=False)
        for index, raw in enumerate(itertools.islice(batches, steps)):
            batch = self._begun(raw)
            self._call("on_train_batch_start", batch, index)
            output = self.module.training_step(batch, index)
            loss = output["loss"] if isinstance(output, Mapping) else output
            if loss is None:
                message = (
                    f"training_step returned None for batch {index} of epoch {self.trainer.current_epoch}: "
                    "our loop cannot leave out a batch, for all ranks exchange gradients in each step; "
                    "return a loss"
                )
                raise ValueError(message)
            self._optimize(loss, is_due=(index + 1) % self._passes() == 0 or index + 1 == steps)
            rows = self.steps_log.rows
            total += torch.tensor([rows * as_float(loss), rows], dtype=torch.float64)
            outputs.append(output)
            self._call("on_train_batch_end", output, batch, index)
            self._log_step()
        self.steps_log.rows = 1
        if _is_overridden(self.module, "training_epoch_end"):
            self.module.training_epoch_end(outputs)
        total = hvd.allreduce(total, op=hvd.Sum, name="estimator.train_loss")
        return (total[0] / total[1]).item()

    def _optimize(self, loss: torch.Tensor, *, is_due: bool) -> None:
        """Add to the gradients; where a step is due, at the end of a group or an epoch, make it."""
        if self.job.terminate_on_nan and not math.isfinite(as_float(loss)):
            message = f"the loss is {as_float(loss)} in step {self.trainer.global_step} (terminate_on_nan)"
            raise ValueError(message)
        (loss / self._passes()).backward()  # type: ignore[no-untyped-call]  # the mean, as Lightning's
        if not is_due:
            return
        self._apply(self.job.trainer_args.get("gradient_clip_val"))
        self.optimizer.zero_grad()
        self.trainer.global_step += 1
        self._step_schedulers("step", self.trainer.global_step)

    def _apply(self, clip: float | None) -> None:
        if not clip:
            self.optimizer.step()
            return
        self.optimizer.synchronize()  # gradients are clipped when they are those of all ranks
        if self.job.trainer_args.get("gradient_clip_algorithm", "norm") == "value":
            torch.nn.utils.clip_grad_value_(self.module.parameters(), clip)
        else:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), clip)
        with self.optimizer.skip_synchronize():
            self.optimizer.step()

    def _log_step(self) -> None:
        logger, step = self.trainer.logger, self.trainer.global_step
        if logger is not None and self.steps_log.last and step % self.job.log_every_n_steps == 0:
            logger.log_metrics(dict(self.steps_log.last), step=step)

    def _validate(self, batches: Any) -> None:
        self.module.eval()
        self._call("on_validation_start")
        self._call("on_epoch_start")
        self._call("on_validation_epoch_start")
        outputs = []
        with torch.no_grad():
            for index, raw in enumerate(itertools.islice(batches, self.common.val_steps)):
                batch = self._begun(raw)
                self._call("on_validation_batch_start", batch, index)
                output = self.module.validation_step(batch, index)
                outputs.append(output)
                self._call("on_validation_batch_end", output, batch, index)
            self.steps_log.rows = 1
            if _is_overridden(self.module, "validation_epoch_end"):
                self.module.validation_epoch_end(outputs)
            self._call("on_validation_epoch_end")
            self._call("on_epoch_end")  # of Lightning 1: at the end of both kinds of epochs

    def _step_schedulers(self, interval: str, count: int) -> None:
        for scheduled in self.schedulers:
            if scheduled.interval != interval or count % scheduled.frequency:
                continue
            if isinstance(scheduled.scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
                scheduled.scheduler.step(float(self.trainer.callback_metrics[scheduled.monitor or "loss"]))
            else:
                scheduled.scheduler.step()

    def _begun(self, raw: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Return the batch of a step; what is logged in the step counts for its rows."""
        self.steps_log.rows = max((len(values) for values in raw.values()), default=1)
        return self._prepared(raw)

    def _prepared(self, batch: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        moved = {name: torch.as_tensor(values).to(self.device) for name, values in batch.items()}
        if self.job.input_shapes:
            for name, shape in zip(self.common.feature_columns, self.job.input_shapes, strict=True):
                if name in moved:  # and not dropped after the transformation
                    moved[name] = reshaped(name, moved[name], shape)
        return moved


def _is_overridden(module: Any, name: str) -> bool:
    """Whether the user's class has the method, and not Lightning alone."""
    for base in type(module).__mro__:
        if name in vars(base):
            return not base.__module__.startswith(("lightning.", "pytorch_lightning."))
    return False
