"""hvd.ShardedOptimizer trains as the optimizer that it wraps, with a share of its memory."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch_models import assert_equal_models, batch, loss_of, make_model, part, train_alone
from torch_releases import needs_fused, needs_scaler

import horovod.torch as hvd

OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05),
    "SGD momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "Adam amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "AdamW fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05),
    "Adadelta": torch.optim.Adadelta,
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.05),
}


def train(model: nn.Module, optimizer: Any, steps: int = 4, first: int = 0) -> None:
    for step in range(first, first + steps):
        optimizer.zero_grad()
        loss_of(model, *part(step, hvd.rank(), hvd.size())).backward()
        optimizer.step()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs_fused if "fused" in name else ()) for name in OPTIMIZERS]
)
def test_equals_the_wrapped_optimizer(name: str, size: int) -> None:
    model = make_model()
    optimizer = hvd.ShardedOptimizer(OPTIMIZERS[name](model.parameters()))

    train(model, optimizer)

    assert_equal_models(model, train_alone(size, OPTIMIZERS[name]))


def test_small_buckets_and_many_groups(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    from horovod.torch import _sharded_buckets

    monkeypatch.setattr(_sharded_buckets, "BUCKET_BYTES", 256)

    def grouped(parameters: Any) -> torch.optim.Optimizer:
        parameters = list(parameters)
        groups = [{"params": parameters[:3], "lr": 0.02}, {"params": parameters[3:]}]
        return torch.optim.AdamW(groups, lr=0.01)

    model = make_model()

    train(model, hvd.ShardedOptimizer(grouped(model.parameters())))

    assert_equal_models(model, train_alone(size, grouped))


def test_the_state_is_a_share(size: int) -> None:
    model = make_model()
    optimizer = hvd.ShardedOptimizer(torch.optim.Adam, model.parameters(), lr=0.01)

    train(model, optimizer, steps=1)

    whole = sum(parameter.numel() for parameter in model.parameters())
    mine = sum(state["exp_avg"].numel() for state in optimizer.state.values())
    assert mine == -(-whole // size)


def test_learning_rate_schedules(size: int) -> None:
    def run(model: nn.Module, optimizer: Any, data: Any) -> None:
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        for step in range(4):
            optimizer.zero_grad()
            loss_of(model, *data(step)).backward()
            optimizer.step()
            schedule.step()

    model, alone = make_model(), make_model()
    run(
        model,
        hvd.ShardedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1)),
        lambda step: part(step, hvd.rank(), size),
    )
    run(alone, torch.optim.SGD(alone.parameters(), lr=0.1), lambda step: batch(step, size))

    assert_equal_models(model, alone)


def test_accumulation(rank: int, size: int) -> None:
    model, alone = make_model(), make_model()
    optimizer = hvd.ShardedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01))
    other = torch.optim.Adam(alone.parameters(), lr=0.01)

    for step in range(4):
        loss_of(model, *part(step, rank, size)).backward()
        _ = optimizer.param_groups  # somebody looks: reduced early, and again
        loss_of(alone, *batch(step, size)).backward()
        if step % 2:
            for one in (optimizer, other):
                one.step()
                one.zero_grad()

    assert_equal_models(model, alone)


@pytest.mark.parametrize("norm_type", [2.0, float("inf")])
def test_clipping(norm_type: float, rank: int, size: int) -> None:
    model, alone = make_model(), make_model()
    optimizer = hvd.ShardedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    other = torch.optim.SGD(alone.parameters(), lr=0.1)

    for step in range(3):
        optimizer.zero_grad()
        other.zero_grad()
        loss_of(model, *part(step, rank, size)).backward()
        loss_of(alone, *batch(step, size)).backward()
        norm = optimizer.clip_grad_norm_(0.05, norm_type)
        expected = torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.05, norm_type)
        torch.testing.assert_close(norm, expected)
        optimizer.step()
        other.step()

    assert_equal_models(model, alone)


@needs_scaler
def test_an_overflow_on_one_rank_is_one_on_all(rank: int, size: int) -> None:
    model, alone = make_model(), make_model()
    optimizer = hvd.ShardedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01))
    other = torch.optim.Adam(alone.parameters(), lr=0.01)
    scalers = [torch.amp.GradScaler("cpu", init_scale=2.0**10) for _ in range(2)]

    for step in range(5):
        for one in (optimizer, other):
            one.zero_grad()
        scalers[0].scale(loss_of(model, *part(step, rank, size))).backward()
        scalers[1].scale(loss_of(alone, *batch(step, size))).backward()
        if step == 2:
            next(alone.parameters()).grad.fill_(float("inf"))
            if rank == size - 1:
                list(model.parameters())[-1].grad[0] = float("nan")
        scalers[0].step(optimizer)
        scalers[1].step(other)
        for scaler in scalers:
            scaler.update()
        assert scalers[0].get_scale() == scalers[1].get_scale()

    assert_equal_models(model, alone)


def test_checkpoint_is_that_of_the_wrapped_optimizer(size: int) -> None:
    model = make_model()
    optimizer = hvd.ShardedOptimizer(torch.optim.AdamW(model.parameters(), lr=0.01))
    train(model, optimizer, steps=2)
    optimizer.consolidate_state_dict(to=None)
    saved = copy.deepcopy(optimizer.state_dict())
    weights = copy.deepcopy(model.state_dict())

    plain_model = make_model()
    plain = torch.optim.AdamW(plain_model.parameters(), lr=0.5)
    plain_model.load_state_dict(weights)
    plain.load_state_dict(copy.deepcopy(saved))  # it keeps what it is given
    for step in (2, 3):
        plain.zero_grad()
        loss_of(plain_model, *batch(step, size)).backward()
        plain.step()
    resumed_model = make_model()
    resumed = hvd.ShardedOptimizer(torch.optim.AdamW(resumed_model.parameters(), lr=0.5))
    resumed_model.load_state_dict(weights)
    resumed.load_state_dict(saved)
    train(resumed_model, resumed, steps=2, first=2)
    train(model, optimizer, steps=2, first=2)

    for name, value in model.state_dict().items():
        assert torch.equal(value, resumed_model.state_dict()[name])
    assert_equal_models(model, plain_model)


@pytest.mark.disagreement
def test_a_state_that_was_not_gathered_is_refused() -> None:
    model = make_model()
    optimizer = hvd.ShardedOptimizer(torch.optim.Adam(model.parameters()))

    with pytest.raises(RuntimeError, match="consolidate_state_dict"):
        optimizer.state_dict()


def test_the_state_of_the_wrapped_optimizer_is_kept(size: int) -> None:
    model = make_model()
    plain = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(2):
        plain.zero_grad()
        loss_of(model, *batch(step, size)).backward()
        plain.step()

    train(model, hvd.ShardedOptimizer(plain), steps=2, first=2)

    assert_equal_models(model, train_alone(size, lambda p: torch.optim.Adam(p, lr=0.01)))


def test_frozen_and_half_precision_and_strided_parameters(rank: int, size: int) -> None:
    def make() -> nn.Module:
        torch.manual_seed(5)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 2))
        model = model.to(memory_format=torch.channels_last)
        model[0].bias.requires_grad_(requires_grad=False)
        model[2] = model[2].to(torch.bfloat16)
        return model

    def loss(model: nn.Module, data: torch.Tensor) -> torch.Tensor:
        hidden = model[1](model[0](data))
        return model[2](hidden.bfloat16()).float().pow(2).mean()

    data = torch.randn(2 * size, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    model, alone = make(), make()
    optimizer = hvd.ShardedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    other = torch.optim.SGD(alone.parameters(), lr=0.1)
    for one, network, rows in ((optimizer, model, data[2 * rank : 2 * rank + 2]), (other, alone, data)):
        loss(network, rows).backward()
        one.step()

    assert model[0].weight.stride() == alone[0].weight.stride()
    for mine, theirs in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=2e-3)


def test_a_process_set(process_set: hvd.ProcessSet) -> None:
    if not process_set.included():
        return
    place, count = process_set.rank(), process_set.size()
    model = make_model()
    optimizer = hvd.ShardedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01), process_set=process_set)

    for step in range(3):
        optimizer.zero_grad()
        loss_of(model, *part(step, place, count)).backward()
        optimizer.step()

    assert_equal_models(model, train_alone(count, lambda p: torch.optim.Adam(p, lr=0.01), steps=3))


def test_a_group_added_later(rank: int, size: int) -> None:
    def run(model: nn.Module, optimizer: Any, data: Any) -> None:
        for step in range(4):
            if step == 2:
                optimizer.add_param_group({"params": list(model.parameters())[2:], "lr": 0.02})
            optimizer.zero_grad()
            model.zero_grad()
            loss_of(model, *data(step)).backward()
            optimizer.step()

    model, alone = make_model(), make_model()
    run(
        model,
        hvd.ShardedOptimizer(torch.optim.Adam(list(model.parameters())[:2], lr=0.01)),
        lambda step: part(step, rank, size),
    )
    run(alone, torch.optim.Adam(list(alone.parameters())[:2], lr=0.01), lambda step: batch(step, size))

    assert_equal_models(model, alone)


@pytest.mark.parametrize("kind", ["LBFGS", "SparseAdam"])
def test_optimizers_that_cannot_be_cut_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=kind):
        hvd.ShardedOptimizer(getattr(torch.optim, kind), make_model().parameters())
