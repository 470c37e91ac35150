"""DistributedOptimizer on stand-in GPUs ends where one process on the CPU ends.

With mixed precision too, where one rank has an overflow: all leave that step out, and take half the scale.
"""

from __future__ import annotations

import torch_cuda

driver = torch_cuda.use()

import torch

import horovod.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
device = torch.device("cuda", rank)
STEPS, PASSES = 4, 2
OVERFLOW_STEP, SCALE = 1, 128.0


def make_model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))


def batch(step: int, part: int, who: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1000 * step + 10 * part + who)
    return torch.randn(5, 6), torch.randn(5, 3)


def reference(left_out: int | None = None) -> list[torch.Tensor]:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        for part in range(PASSES):
            for who in range(size):
                x, y = batch(step, part, who)
                ((model(x) - y).square().mean() / size).backward()
        if step != left_out:
            optimizer.step()
    return [p.detach() for p in model.parameters()]


def train(options: dict[str, object], *, is_mixed: bool = False) -> list[torch.Tensor]:
    model = make_model().to(device)
    scaler = torch.amp.GradScaler("cuda", init_scale=SCALE, enabled=is_mixed)
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
            with torch.autocast("cuda", enabled=is_mixed):
                result = model(x.to(device))
                loss = (result - y.to(device)).square().mean()
            assert result.dtype == (torch.float16 if is_mixed else torch.float32), result.dtype
            if is_mixed and step == OVERFLOW_STEP and rank == 0:
                loss = loss * 1e6
            scaler.scale(loss).backward()
        if is_mixed:
            optimizer.synchronize()
            scaler.unscale_(optimizer)
            with optimizer.skip_synchronize():
                scaler.step(optimizer)
            scaler.update()
            wanted = SCALE if step < OVERFLOW_STEP else SCALE / 2
            assert scaler.get_scale() == wanted, (step, scaler.get_scale())
        else:
            optimizer.step()
    return [p.detach().cpu() for p in model.parameters()]


expected = reference()
for options in ({}, {"groups": 2}):
    for mine, wanted in zip(train(dict(options)), expected, strict=True):
        assert torch.allclose(mine, wanted, atol=1e-5), (options, mine, wanted)
for mine, wanted in zip(train({}, is_mixed=True), reference(OVERFLOW_STEP), strict=True):
    assert torch.allclose(mine, wanted, atol=1e-2), (mine, wanted)


def train_sharded() -> list[torch.Tensor]:
    model = make_model().to(device)
    optimizer = hvd.ShardedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    for step in range(STEPS):
        optimizer.zero_grad()
        for part in range(PASSES):
            x, y = batch(step, part, rank)
            (model(x.to(device)) - y.to(device)).square().mean().backward()
        optimizer.step()
    return [p.detach().cpu() for p in model.parameters()]


for mine, wanted in zip(train_sharded(), expected, strict=True):
    assert torch.allclose(mine, wanted, atol=1e-5), ("sharded", mine, wanted)
hvd.shutdown()
print("TRAINING RIGHT", rank)
