"""Releases of PyTorch that nobody of us has seen: the program trains, whatever their version says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from horovod.torch._release import release_of

PROGRAM = """
import torch
torch.__version__ = {version!r}
import horovod.torch as hvd
hvd.init()
layer = torch.nn.Linear(2, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(layer.parameters(), 0.1), layer.named_parameters())
hvd.broadcast_parameters(layer.state_dict(), root_rank=0)
before = layer.weight.clone()
layer(torch.ones(3, 2)).sum().backward()
optimizer.step()
assert not torch.equal(before, layer.weight)
print("trained")
"""


@pytest.mark.parametrize(
    ("version", "release"),
    [("2.13.0+cpu", (2, 13)), ("2.1.2", (2, 1)), ("3.0.0a0+git1234", (3, 0)), ("unreadable", (99, 0))],
)
def test_versions_are_read(version, release):
    assert release_of(version) == release


@pytest.mark.parametrize("version", ["9.9.0a0+git1234", "unreadable"])
def test_a_release_from_the_future_trains(version):
    command = [sys.executable, "-c", PROGRAM.format(version=version)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode == 0, ended.stderr
    assert "trained" in ended.stdout
