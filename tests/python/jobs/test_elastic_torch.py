"""Elastic jobs with PyTorch: every sample counts once, over deaths, leaves and joins at any place."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from job import Ended, horovodrun, run, write_script

PROGRAM = str(Path(__file__).with_name("elastic_program.py"))
LIMIT_SECONDS = 300  # importing PyTorch on a busy machine takes its time


def run_training(
    folder: Path,
    size: int,
    length: int,
    epochs: int,
    loaders: int,
    *events: str,
    options: tuple[str, ...] = (),
) -> Ended:
    (folder / "hosts").write_text(f"localhost:{size}\n")
    launch = [horovodrun(), "-np", str(size), "--host-discovery-script", f"cat {folder}/hosts"]
    launch += ["--blacklist-cooldown-range", "1", "1", *options]
    command = [sys.executable, PROGRAM, str(folder), str(length), str(epochs), str(loaders), *events]
    return run([*launch, *command], LIMIT_SECONDS)


def assert_ended_well(job: Ended) -> None:
    assert job.code == 0, job.output
    steps = re.findall(r"done: rank \d+ of \d+ step (\d+)", job.output)
    assert steps, job.output
    assert len(set(steps)) == 1, job.output


def test_every_sample_counts_once_with_loader_workers_over_a_death_a_join_and_a_leave(tmp_path):
    job = run_training(
        tmp_path, 2, 120, 2, 2, "kill@4", "hosts=localhost:3@8", "leave@40", options=("--min-np", "1")
    )

    assert_ended_well(job)
    assert "signal 9" in job.output, job.output
    assert "new epoch 3" in job.output, job.output


def test_workers_that_die_in_broadcast_commit_and_reset_lose_no_sample(tmp_path):
    job = run_training(
        tmp_path,
        4,
        96,
        1,
        0,
        "in-broadcast@2",
        "in-commit@4",
        "in-reset@1",
        options=("--min-np", "1", "--max-np", "4"),
    )

    assert_ended_well(job)
    assert "resets, " in job.output, job.output
    assert {"in-broadcast-2", "in-commit-4", "in-reset-1"} <= {path.name for path in tmp_path.iterdir()}


SHARDED = """
import os, signal, sys, time
from pathlib import Path

import torch

import horovod.torch as hvd

FOLDER = Path(sys.argv[1])


def model_of(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 2))


def step(model, optimizer, number):
    inputs = torch.randn(4, 5, generator=torch.Generator().manual_seed(number))
    optimizer.zero_grad()
    model(inputs).square().sum().backward()
    optimizer.step()


def die_once():
    try:
        (FOLDER / "killed").touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@hvd.elastic.run
def train(state):
    # Some steps in each world, until those that were lost are replaced.
    state.sizes = (*state.sizes, hvd.size())
    last = state.step + 5
    while state.step < last or len(state.sizes) == 1 or hvd.size() < 3:
        if state.step < last:
            step(state.model, state.optimizer, state.step)
            state.step += 1
        else:
            time.sleep(0.01)  # leaves the machine to newcomers
        if state.step == 4 and hvd.rank() == 0:
            die_once()
        state.commit()


hvd.init()
torch.set_num_threads(1)
model = model_of(hvd.rank())
optimizer = hvd.ShardedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01))
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0, sizes=())
train(state)
plain = model_of(0)
adam = torch.optim.Adam(plain.parameters(), lr=0.01)
for number in range(state.step):
    step(plain, adam, number)
for mine, expected in zip(model.parameters(), plain.parameters(), strict=True):
    assert torch.allclose(mine, expected, rtol=1e-3, atol=1e-5), (mine, expected)
print("done: sizes", *state.sizes, flush=True)
"""


@pytest.mark.parametrize(
    ("hosts", "options", "smaller"),
    [
        ("localhost:3\n", [], 2),
        # Two of three ranks are on the host that is lost.
        ("localhost:2\n127.0.0.1:1\n", ["--whole-hosts"], 1),
    ],
    ids=["a rank", "a host"],
)
def test_the_state_of_a_sharded_optimizer_survives_the_loss_of(hosts, options, smaller, tmp_path):
    (tmp_path / "hosts").write_text(hosts)
    launch = [horovodrun(), "-np", "3", "--min-np", "1", "--hostfile", str(tmp_path / "hosts")]
    launch += ["--blacklist-cooldown-range", "1", "1", *options]

    job = run([*launch, sys.executable, write_script(tmp_path, SHARDED), str(tmp_path)], LIMIT_SECONDS)

    assert job.code == 0, job.output
    assert len(re.findall(rf"done: sizes 3 {smaller} .*3\n", f"{job.output}\n")) == 3, job.output
