"""DistributedOptimizer on stand-in GPUs ends where one process on the CPU ends."""

from __future__ import annotations

import torch_cuda

driver = torch_cuda.use()

import torch

import horovod.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
device = torch.device("cuda", rank)
STEPS, PASSES = 4, 2


def make_model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))


def batch(step: int, part: int, who: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1000 * step + 10 * part + who)
    return torch.randn(5, 6), torch.randn(5, 3)


def reference() -> list[torch.Tensor]:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        for part in range(PASSES):
            for who in range(size):
                x, y = batch(step, part, who)
                ((model(x) - y).square().mean() / size).backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def train(options: dict[str, object], scale: float) -> list[torch.Tensor]:
    model = make_model().to(device)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        named_parameters=model.named_parameters(),
        backward_passes_per_step=PASSES,
        **options,
    )
    for step in range(STEPS):
        optimizer.zero_grad()
        for part in range(PASSES):
            x, y = batch(step, part, rank)
            with torch.autocast("cpu", enabled=False):
                loss = (model(x.to(device)) - y.to(device)).square().mean()
            (loss * scale).backward()
        if scale != 1.0:  # as a GradScaler does it: synchronize, unscale, step
            optimizer.synchronize()
            for parameter in model.parameters():
                parameter.grad.mul_(1 / scale)
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()
    return [p.detach().cpu() for p in model.parameters()]


expected = reference()
for options, scale in (({}, 1.0), ({"groups": 2}, 1.0), ({}, 128.0)):
    for mine, wanted in zip(train(dict(options), scale), expected, strict=True):
        assert torch.allclose(mine, wanted, atol=1e-5), (options, scale, mine, wanted)
hvd.shutdown()
print("TRAINING RIGHT", rank)
