"""Mixed precision, gradient accumulation and gradient clipping in one training loop.

    horovodrun -np 2 python examples/torch/mixed_precision.py

The order of the calls is the recipe: each comment says why its line stands where it stands.
"""

from __future__ import annotations

import argparse
import os

import torch
from pictures import CLASSES, make_pictures
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="pictures per backward pass")
    parser.add_argument("--accumulate", type=int, default=4, help="backward passes per step")
    parser.add_argument("--max-norm", type=float, default=1.0, help="longest gradient after clipping")
    parser.add_argument("--pictures", type=int, default=4096)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    hvd.init()
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // hvd.local_size()))
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.float16 if device == "cuda" else torch.bfloat16

    pictures = make_pictures(arguments.pictures, seed=1)
    sampler = DistributedSampler(pictures, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(pictures, batch_size=arguments.batch_size, sampler=sampler, drop_last=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    model.to(device)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.AdamW(model.parameters(), lr=1e-3),
        named_parameters=model.named_parameters(),
        # Gradients of so many passes are summed here before they travel: one exchange per step.
        backward_passes_per_step=arguments.accumulate,
        # And they travel as float16: half the bytes. The sum over the workers is made in float32.
        compression=hvd.Compression.fp16,
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    # Small on purpose, so that it grows within this example. Every worker starts with the same.
    scaler = torch.amp.GradScaler(device, init_scale=256.0, growth_interval=20)

    for epoch in range(1, arguments.epochs + 1):
        sampler.set_epoch(epoch)
        losses, norms = [], []
        for number, (images, labels) in enumerate(loader, start=1):
            with torch.autocast(device, dtype=dtype):
                loss = functional.cross_entropy(model(images.to(device)), labels.to(device))
            # Passes are summed; the division makes the sum an average over the passes.
            scaler.scale(loss / arguments.accumulate).backward()
            losses.append(loss.item())
            if number % arguments.accumulate:
                continue
            # From here on the gradients are those of all workers: an overflow of one is seen by all,
            # so all of them skip the step, and their scales stay equal.
            optimizer.synchronize()
            scaler.unscale_(optimizer)
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), arguments.max_norm).item())
            with optimizer.skip_synchronize():  # they are synchronized already
                scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        mean = hvd.allreduce(torch.tensor([sum(losses) / len(losses)]), name="loss").item()
        if hvd.rank() == 0:
            print(
                f"epoch {epoch}: loss {mean:.3f}, {len(norms)} steps, gradient norm before clipping "
                f"{min(norms):.2f} to {max(norms):.2f}, loss scale {scaler.get_scale():.0f}",
            )
    scales = hvd.allgather_object(scaler.get_scale())
    if hvd.rank() == 0:
        print(f"loss scales of the workers: {scales}")


if __name__ == "__main__":
    main()
