"""Linear regression with PyTorch whose workers come and go.

horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script ./hosts.sh python torch_linear.py
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import horovod.torch as hvd


def make_data(count: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(count, 16, generator=generator)
    truth = torch.randn(16, 1, generator=generator)
    return TensorDataset(inputs, inputs @ truth)


@hvd.elastic.run
def train(state: hvd.elastic.TorchState, data: TensorDataset, options: argparse.Namespace) -> None:
    """Begins here after every reset: what must survive is in the state."""
    loader = DataLoader(data, batch_size=options.batch_size, sampler=state.sampler)
    while state.epoch < options.epochs:
        for inputs, targets in loader:
            state.optimizer.zero_grad()
            loss = nn.functional.mse_loss(state.model(inputs), targets)
            loss.backward()
            state.optimizer.step()
            state.sampler.record_batch(0, len(inputs))
            state.step += 1
            state.commit()  # cheap: a copy in memory, and a look whether workers came or go
            time.sleep(options.seconds_per_step)
        average = float(hvd.allreduce(loss.detach()))
        if hvd.rank() == 0:
            print(f"epoch {state.epoch}: loss {average:.5f}, {hvd.size()} workers", flush=True)
        state.epoch += 1
        state.scheduler.step()
        state.sampler.set_epoch(state.epoch)
        state.commit()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seconds-per-step", type=float, default=0.05, help="so that there is time to watch")
    options = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    data = make_data(options.samples)
    model = nn.Linear(16, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9))
    state = hvd.elastic.TorchState(
        model=model,
        optimizer=optimizer,
        scheduler=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95),
        sampler=hvd.elastic.ElasticSampler(data),
        epoch=0,
        step=0,
    )

    def report() -> None:
        print(f"rank {hvd.rank()} of {hvd.size()} goes on with step {state.step}", flush=True)

    state.register_reset_callbacks([report])
    train(state, data, options)
    print(f"rank {hvd.rank()} is done after {state.step} steps", flush=True)


if __name__ == "__main__":
    main()
