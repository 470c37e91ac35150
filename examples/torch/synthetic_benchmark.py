"""Measures how many images per second the workers train together, on images of noise.

    horovodrun -np 2 python examples/torch/synthetic_benchmark.py --compare-to-one
    horovodrun -np 2 python examples/torch/synthetic_benchmark.py --model resnet50 --image-size 224

--compare-to-one measures one worker alone first, while the others wait, and says which part of N times
that speed N workers reach: 100 % would mean that communication costs nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import torch
from resnet import MODELS
from torch.nn import functional

import horovod.torch as hvd

CONFIDENCE = 1.96  # of 95 %, in standard deviations


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, default="resnet8")
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16, help="images per worker and step")
    parser.add_argument("--num-warmup-batches", type=int, default=5)
    parser.add_argument("--num-batches-per-iter", type=int, default=5)
    parser.add_argument("--num-iters", type=int, default=10)
    parser.add_argument("--fp16-allreduce", action="store_true", help="gradients travel as float16")
    parser.add_argument("--use-adasum", action="store_true", help="combine updates by Adasum")
    parser.add_argument("--compare-to-one", action="store_true", help="measure one worker alone first")
    parser.add_argument("--tune-allocator", action="store_true", help="keep freed memory")
    return parser.parse_args()


def say(text: str) -> None:
    if hvd.rank() == 0:
        print(text, flush=True)


def make_step(arguments: argparse.Namespace, *, distributed: bool) -> Callable[[], None]:
    """Return a function that trains on one batch."""
    torch.manual_seed(hvd.rank())
    model = MODELS[arguments.model]()
    images = torch.randn(arguments.batch_size, 3, arguments.image_size, arguments.image_size)
    labels = torch.randint(1000, (arguments.batch_size,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if distributed:
        optimizer = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=model.named_parameters(),
            compression=hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none,
            op=hvd.Adasum if arguments.use_adasum else hvd.Average,
        )
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def measure(arguments: argparse.Namespace, step: Callable[[], None]) -> list[float]:
    """Return the images per second of this worker, once per iteration."""
    say(f"  warming up ({arguments.num_warmup_batches} batches)")
    for _ in range(arguments.num_warmup_batches):
        step()
    speeds = []
    for number in range(1, arguments.num_iters + 1):
        start = time.perf_counter()
        for _ in range(arguments.num_batches_per_iter):
            step()
        speeds.append(arguments.batch_size * arguments.num_batches_per_iter / (time.perf_counter() - start))
        say(f"  iteration {number:2} of {arguments.num_iters}: {speeds[-1]:8.1f} images/s per worker")
    return speeds


def plus_minus(speeds: list[float]) -> str:
    return f"{statistics.mean(speeds):.1f} +- {CONFIDENCE * statistics.pstdev(speeds):.1f} images/s"


def measure_alone(arguments: argparse.Namespace) -> float:
    """Measure rank 0 without communication; the others wait. Returns the result to all."""
    say("one worker alone, without communication:")
    alone = 0.0
    if hvd.rank() == 0:
        speeds = measure(arguments, make_step(arguments, distributed=False))
        say(f"  {plus_minus(speeds)}")
        alone = statistics.mean(speeds)
    return float(hvd.broadcast_object(alone, root_rank=0))


def main() -> None:
    arguments = parse_arguments()
    hvd.init()
    # Each worker has its share of the cores, also when it is measured alone.
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // hvd.local_size()))
    if arguments.tune_allocator:
        hvd.tune_allocator()
    side = arguments.image_size
    say(f"{arguments.model}, {arguments.batch_size} images of {side} x {side} per worker")
    alone = measure_alone(arguments) if arguments.compare_to_one else 0.0

    say(f"{hvd.size()} worker(s) together:")
    mine = measure(arguments, make_step(arguments, distributed=True))
    # Iterations are averaged over the workers: all of them wait for the slowest in each step anyway.
    speeds = hvd.allreduce(torch.tensor(mine), name="speeds").tolist()
    say(f"per worker:              {plus_minus(speeds)}")
    say(f"all {hvd.size()} worker(s):         {plus_minus([hvd.size() * speed for speed in speeds])}")
    if alone:
        efficiency = statistics.mean(speeds) / alone
        say(f"scaling efficiency:      {efficiency:.1%} of {hvd.size()} x {alone:.1f} images/s")


if __name__ == "__main__":
    main()
