"""FSDP2 on the backend "horovod": each worker keeps its part of parameters, gradients and optimizer state.

    horovodrun -np 2 python examples/torch/fsdp2.py

Trains a small transformer to predict the next number of sequences that count up in different strides.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional

import horovod.torch  # noqa: F401 - makes the backend known to torch

NUMBERS = 32
LENGTH = 24
WIDTH = 64


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=16, help="sequences per worker and step")
    parser.add_argument("--layers", type=int, default=2)
    return parser.parse_args()


class Model(nn.Module):
    """Numbers in, a guess about the number after each of them out."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(NUMBERS, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.guess = nn.Linear(WIDTH, NUMBERS)

    def forward(self, sequences: Tensor) -> Tensor:
        length = sequences.shape[1]
        hidden = self.embed(sequences) + self.place(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)  # no look at what comes next
        for block in self.blocks:
            hidden = block(hidden, src_mask=mask, is_causal=True)
        return self.guess(hidden.flatten(0, 1))


def make_sequences(count: int) -> Tensor:
    start = torch.randint(NUMBERS, (count, 1))
    stride = torch.randint(1, 6, (count, 1))
    return (start + stride * torch.arange(LENGTH + 1)) % NUMBERS


def main() -> None:
    arguments = parse_arguments()
    dist.init_process_group("horovod", init_method="horovod://")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // size))
    mesh = init_device_mesh("cpu", (size,))

    torch.manual_seed(1)  # the same model everywhere, before it is cut
    model = Model(arguments.layers)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)  # a block is gathered when it is needed, and freed afterwards
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)  # after sharding: it sees the parts
    whole = sum(parameter.numel() for parameter in model.parameters())
    mine = sum(parameter.to_local().numel() for parameter in model.parameters())
    if rank == 0:
        print(f"{size} workers; rank 0 keeps {mine} of {whole} parameters")

    torch.manual_seed(1 + rank)  # other sequences for every worker
    for step in range(1, arguments.steps + 1):
        sequences = make_sequences(arguments.batch_size)
        optimizer.zero_grad()
        guesses = model(sequences[:, :-1])
        loss = functional.cross_entropy(guesses, sequences[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            mean = loss.detach() / size
            dist.all_reduce(mean)
            if rank == 0:
                print(f"step {step:3}: loss {mean.item():.3f}")

    # A checkpoint that any number of workers, or a program without FSDP, can load.
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if rank == 0:
        Model(arguments.layers).load_state_dict(state)
        print(f"the whole model, {len(state)} tensors, loads into a plain one")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
