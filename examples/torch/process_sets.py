"""Two teams of workers train two models at the same time, then the better one is shared.

    horovodrun -np 2 python examples/torch/process_sets.py
    horovodrun -np 4 python examples/torch/process_sets.py

A process set is some of the workers of the job. Operations and optimizers that are given one involve
its members alone.
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
    parser.add_argument("--pictures", type=int, default=2048)
    parser.add_argument("--lrs", type=float, nargs=2, default=[0.01, 0.0001], help="of each team")
    return parser.parse_args()


def make_teams() -> list[hvd.ProcessSet]:
    """Split the workers in two; a worker alone is a team by itself."""
    if hvd.size() == 1:
        return [hvd.global_process_set]
    halves = [range(hvd.size() // 2), range(hvd.size() // 2, hvd.size())]
    # Every worker adds every set, in the same order, whether it is a member or not.
    return [hvd.add_process_set(list(half)) for half in halves]


def main() -> None:
    arguments = parse_arguments()
    hvd.init(process_sets="dynamic")  # sets are added after the start
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // hvd.local_size()))
    torch.manual_seed(hvd.rank())
    teams = make_teams()
    team_number = next(number for number, team in enumerate(teams) if team.included())
    team = teams[team_number]
    captain = team.ranks[0]  # roots are ranks of the job, also in a process set

    pictures = make_pictures(arguments.pictures, seed=1)
    sampler = DistributedSampler(pictures, num_replicas=team.size(), rank=team.rank())
    loader = DataLoader(pictures, batch_size=32, sampler=sampler)
    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=arguments.lrs[team_number]),
        named_parameters=model.named_parameters(),
        process_set=team,
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=captain, process_set=team)

    loss = torch.zeros(())
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()  # the teams do not wait for each other

    # Within the team, then among all workers.
    team_loss = hvd.allreduce(loss.detach(), name="loss", process_set=team).item()
    reports = hvd.allgather_object((team_loss, captain, team_number))
    best_loss, best_captain, best_team = min(reports)
    hvd.broadcast_parameters(model.state_dict(), root_rank=best_captain)
    if hvd.rank() == 0:
        for team_loss, number in sorted({(loss, number) for loss, _, number in reports}):
            ranks, lr = teams[number].ranks, arguments.lrs[number]
            print(f"team {number} (ranks {ranks}, learning rate {lr}): last loss {team_loss:.3f}")
        print(f"all workers now have the model of team {best_team}, with a loss of {best_loss:.3f}")
    if hvd.size() > 1:
        for other in teams:
            hvd.remove_process_set(other)


if __name__ == "__main__":
    main()
