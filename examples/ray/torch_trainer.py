"""Trains a small network with HorovodTrainer and PyTorch: data from Ray, checkpoints, restarts.

python examples/ray/torch_trainer.py --workers 2
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import ray
import ray.train
import torch
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from torch import nn

import horovod.torch as hvd
from horovod.ray import HorovodTrainer


def restore(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Continue from the last checkpoint after a restart; return the epoch to begin with."""
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is None:
        return 0
    with checkpoint.as_directory() as folder:
        state = torch.load(Path(folder, "state.pt"))
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["epoch"]) + 1


def report(epoch: int, loss: float, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Every worker reports; rank 0 adds the checkpoint."""
    mean = hvd.allreduce(torch.tensor(loss), name="loss").item()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if hvd.rank() == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            torch.save(state, Path(folder, "state.pt"))
            checkpoint = Checkpoint.from_directory(folder)
        ray.train.report({"epoch": epoch, "loss": mean}, checkpoint=checkpoint)


def train_func(config: dict[str, Any]) -> None:
    hvd.init()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    first = restore(model, optimizer)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    rows = ray.train.get_dataset_shard("train")
    for epoch in range(first, config["epochs"]):
        total, steps = 0.0, 0
        for batch in rows.iter_torch_batches(batch_size=32):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(batch["x"].float()[:, None])[:, 0], batch["y"].float())
            loss.backward()
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        report(epoch, total / steps, model, optimizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--storage", default=tempfile.gettempdir(), help="a folder that all nodes see")
    arguments = parser.parse_args()

    data = ray.data.from_items([{"x": x / 512, "y": 3 * x / 512 + 1} for x in range(512)])
    trainer = HorovodTrainer(
        train_func,
        train_loop_config={"lr": 0.1, "epochs": arguments.epochs},
        scaling_config=ScalingConfig(use_gpu=False, num_workers=arguments.workers),
        run_config=RunConfig(storage_path=arguments.storage, failure_config=FailureConfig(max_failures=2)),
        datasets={"train": data},
    )
    result = trainer.fit()
    print(f"epoch {result.metrics['epoch']}: loss {result.metrics['loss']:.4f}")


if __name__ == "__main__":
    main()
