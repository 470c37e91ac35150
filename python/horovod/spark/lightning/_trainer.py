"""What modules and callbacks of Lightning see of our loop: the part of a Trainer that they ask for most."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import torch

import horovod.torch as hvd
from horovod.spark.torch._meters import as_float

_log = logging.getLogger("horovod.spark")


class LoopTrainer:
    """Stands where a Trainer stands. `callback_metrics` are averages over ranks, known after each epoch."""

    def __init__(self, callbacks: Iterable[Any], logger: Any, max_epochs: int) -> None:
        """Begin before the first epoch."""
        self.callbacks = [each for each in callbacks if not _is_checkpoint(each)]
        self.logger = logger
        self.loggers = [] if logger is None else [logger]
        self.max_epochs = max_epochs
        self.current_epoch = 0
        self.global_step = 0
        self.should_stop = False
        self.callback_metrics: dict[str, torch.Tensor] = {}
        self.logged_metrics = self.callback_metrics
        self.sanity_checking = False
        self.fast_dev_run = False
        self.training = True
        self.val_check_interval = 1.0
        self.check_val_every_n_epoch = 1
        self.global_rank = hvd.rank()
        self.local_rank = hvd.local_rank()
        self.world_size = hvd.size()
        self.is_global_zero = hvd.rank() == 0
        self.state = SimpleNamespace(fn="fit", stage=None)
        self.strategy = SimpleNamespace(reduce_boolean_decision=_any_rank, broadcast=_same)

    def __getattr__(self, name: str) -> Any:
        """Say what is missing, and why."""
        message = f"the training loop is that of horovod.spark.lightning, which has no Trainer.{name}"
        raise AttributeError(message)

    def call(self, hook: str, module: Any, *args: Any) -> None:
        """Call a hook of the callbacks, then of the module."""
        for callback in self.callbacks:
            function = getattr(callback, hook, None)
            if function is not None:
                function(self, module, *args)
        function = getattr(module, hook, None)
        if function is not None:
            function(*args)


def _is_checkpoint(callback: Any) -> bool:
    if any(base.__name__ == "ModelCheckpoint" for base in type(callback).__mro__):
        _log.warning("ModelCheckpoint is left out: the store keeps the state after each epoch")
        return True
    return False


def _same(value: Any, src: int = 0) -> Any:
    del src
    return value


def _any_rank(decision: bool, all: bool = True) -> bool:
    votes = hvd.allreduce(torch.tensor([int(decision)]), op=hvd.Sum, name="estimator.decision").item()
    return bool(votes == hvd.size() if all else votes > 0)


class StepLog:
    """Takes the place of `log` and `log_dict` of a module: averages over an epoch and over all ranks."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._sums: dict[str, list[float]] = {}
        self.rows = 1
        """What a value logged without a batch_size counts for: the rows of the batch under way, or 1."""
        self.last: dict[str, float] = {}

    def log(self, name: str, value: Any, *args: Any, batch_size: int | None = None, **kwargs: Any) -> None:
        """Take in one value."""
        del args, kwargs
        number = as_float(value.compute() if hasattr(value, "compute") else value)
        rows = batch_size or self.rows
        total = self._sums.setdefault(name, [0.0, 0.0])
        total[0] += number * rows
        total[1] += rows
        self.last[name] = number

    def log_dict(self, dictionary: Any, *args: Any, **kwargs: Any) -> None:
        """Take in several values."""
        for name, value in dictionary.items():
            self.log(name, value, *args, **kwargs)

    def averages(self, stage: str) -> dict[str, float]:
        """Return the averages over all ranks and begin anew; every rank calls it."""
        names = sorted(self._sums)
        known = hvd.allgather_object(names, name=f"estimator.names.{stage}")
        union = sorted({name for each in known for name in each})
        sums = torch.tensor([self._sums.get(name, [0.0, 0.0]) for name in union], dtype=torch.float64)
        self._sums = {}
        if not union:
            return {}
        total = hvd.allreduce(sums, op=hvd.Sum, name=f"estimator.log.{stage}")
        return {name: (row[0] / row[1]).item() for name, row in zip(union, total, strict=True)}
