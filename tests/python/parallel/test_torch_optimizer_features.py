"""DistributedOptimizer beside other features of torch: AMP, compile, checkpoints, copies, schedules."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import pytest
import torch
import training_cases as cases
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_releases import needs_fused, needs_scaler, since

import horovod.torch as hvd

# ---- mixed precision


def make_scaler() -> Any:
    return torch.amp.GradScaler(device="cpu", init_scale=1024.0, growth_interval=100)


def amp_step(model: nn.Module, optimizer: Any, scaler: Any, batch: cases.Batch, way: str) -> None:
    optimizer.zero_grad()
    scaler.scale(cases.loss_of(model, batch)).backward()
    if way == "manual" and hasattr(optimizer, "synchronize"):
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)
    else:
        if way != "plain":
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
    scaler.update()


@needs_scaler
@pytest.mark.parametrize("way", ["plain", "unscaled", "manual"])
@pytest.mark.parametrize("fused", [False, pytest.param(True, marks=needs_fused)])
@pytest.mark.parametrize("schedule", ["step", "background"])
def test_grad_scaler_trains_like_one_process(
    way: str, fused: bool, schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOROVOD_GRADIENT_SCHEDULE", schedule)
    batches = cases.make_batches(4, torch.float64)
    model, expected = cases.make_model(torch.float64), cases.make_model(torch.float64)
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), fused=fused, lr=0.01))
    plain = torch.optim.Adam(expected.parameters(), fused=fused, lr=0.01)
    scaler, plain_scaler = make_scaler(), make_scaler()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in batches:
            amp_step(model, optimizer, scaler, cases.share(batch), way)
            amp_step(expected, plain, plain_scaler, batch, way)

    cases.assert_same_parameters(model, expected, atol=1e-9)


@needs_scaler
@pytest.mark.parametrize("way", ["plain", "unscaled", "manual"])
@pytest.mark.parametrize("op", ["Average", "Adasum"])
def test_overflow_on_one_rank_is_an_overflow_on_all(way: str, op: str, rank: int) -> None:
    if op == "Adasum" and (way == "manual" or hvd.size() == 1):
        pytest.skip("the Adasum optimizer has no synchronize; alone it is the ordinary one")
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(
        cases.sgd(model.parameters()), model.named_parameters(), op=getattr(hvd, op)
    )
    scaler = make_scaler()
    good = cases.share(cases.make_batches(1)[0])
    bad = (good[0] * (float("inf") if rank == 0 else 1.0), good[1])
    before = cases.copy_of(model)

    amp_step(model, optimizer, scaler, bad, way)
    assert scaler.get_scale() == 512.0
    cases.assert_same_parameters(model, before, atol=0, rtol=0)

    amp_step(model, optimizer, scaler, good, way)
    assert scaler.get_scale() == 512.0
    assert not torch.equal(next(model.parameters()), next(before.parameters()))
    cases.assert_equal_on_all_ranks(model)


@pytest.mark.disagreement
@needs_scaler
def test_grad_scaler_where_ranks_use_different_parameters(rank: int) -> None:
    left, right = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([left, right], lr=1.0))
    scaler = make_scaler()

    scaler.scale((left if rank == 0 else right).sum()).backward()
    scaler.step(optimizer)
    scaler.update()

    size = hvd.size()
    torch.testing.assert_close(left.detach(), torch.full((2,), 1 - 1 / size))
    torch.testing.assert_close(right.detach(), torch.full((2,), 1 - (size - 1) / size))


def test_autocast_trains() -> None:
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))

    for batch in cases.make_batches(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = cases.loss_of(model, cases.share(batch))
        loss.backward()
        optimizer.step()

    cases.assert_equal_on_all_ranks(model)


@pytest.mark.disagreement
def test_one_rank_may_read_param_groups_between_backward_and_step(rank: int) -> None:
    batches = cases.make_batches(3)
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))

    for batch in batches:
        optimizer.zero_grad()
        loss = cases.loss_of(model, cases.share(batch))
        loss.backward()
        if rank == 0:
            assert optimizer.param_groups[0]["lr"] == 0.1
        hvd.allreduce(loss.detach(), name="loss")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer.step()

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


# ---- compile and checkpoints


# Dynamo itself reads .grad of the input of a block.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
@pytest.mark.parametrize("regional", [False, True])
def test_torch_compile(regional: bool) -> None:
    batches = cases.make_batches(3)
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()), model.named_parameters())
    if regional:
        compiled = nn.Sequential(*(torch.compile(layer, backend="aot_eager") for layer in model))
    else:
        compiled = torch.compile(model, backend="aot_eager")

    cases.train(compiled, optimizer, [cases.share(batch) for batch in batches])

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


class Repeated(nn.Module):
    """One layer inside of two checkpoints."""

    def __init__(self, *, use_reentrant: bool) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.layer = nn.Linear(cases.FEATURES, cases.FEATURES)
        self.last = nn.Linear(cases.FEATURES, cases.CLASSES)
        self.use_reentrant = use_reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_()
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=self.use_reentrant)
        return self.last(x)


def test_activation_checkpoints() -> None:
    batches = cases.make_batches(3)
    model, expected = Repeated(use_reentrant=False), Repeated(use_reentrant=False)
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))

    cases.train(model, optimizer, [cases.share(batch) for batch in batches])
    cases.train(expected, cases.sgd(expected.parameters()), batches)

    cases.assert_same_parameters(model, expected)


@pytest.mark.disagreement
def test_reentrant_checkpoints_of_one_layer_are_explained() -> None:
    model = Repeated(use_reentrant=True)
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))

    with pytest.raises(AssertionError, match="use_reentrant=False"):
        cases.loss_of(model, cases.share(cases.make_batches(1)[0])).backward()

    optimizer.synchronize()


# ---- copies and states


def test_model_with_hooks_can_be_copied_and_pickled() -> None:
    batch = cases.share(cases.make_batches(1)[0])
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    cases.train(model, optimizer, [batch])

    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    copies = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        torch.load(buffer, weights_only=False),
    ]

    for other in copies:
        cases.assert_same_parameters(other, model, atol=0, rtol=0)
        cases.loss_of(other, batch).backward()
    assert not optimizer._handles


def test_optimizer_is_copied_and_pickled_as_one_of_the_wrapped_class() -> None:
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    cases.train(model, optimizer, [cases.share(cases.make_batches(1)[0])])

    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert type(other) is torch.optim.SGD
        state = other.state_dict()["state"]
        for index, entry in optimizer.state_dict()["state"].items():
            assert torch.equal(entry["momentum_buffer"], state[index]["momentum_buffer"])
        other.step()


def test_state_dict_continues_in_another_optimizer() -> None:
    batches = cases.make_batches(4)
    model = cases.make_model()
    shares = [cases.share(batch) for batch in batches]
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    cases.train(model, optimizer, shares[:2])

    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
    buffer.seek(0)
    saved = torch.load(buffer)
    other = cases.make_model()
    other.load_state_dict(saved["model"])
    continued = hvd.DistributedOptimizer(torch.optim.SGD(other.parameters(), lr=9.0))
    continued.load_state_dict(saved["optimizer"])
    cases.train(other, continued, shares[2:])

    assert continued.param_groups[0]["lr"] == 0.1
    cases.assert_same_parameters(other, cases.train_alone(cases.sgd, batches))


@pytest.mark.disagreement
def test_load_state_dict_gives_up_gradients_under_way() -> None:
    batches = cases.make_batches(2)
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    state = copy.deepcopy(optimizer.state_dict())
    cases.loss_of(model, cases.share(batches[0])).backward()
    hvd.barrier()

    optimizer.load_state_dict(state)

    assert not optimizer._handles
    optimizer.zero_grad()
    cases.train(model, optimizer, [cases.share(batch) for batch in batches])
    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


@pytest.mark.parametrize("made_before_wrapping", [False, True])
def test_learning_rate_scheduler(made_before_wrapping: bool) -> None:
    batches = cases.make_batches(4)
    model, expected = cases.make_model(), cases.make_model()
    plain = cases.sgd(model.parameters())
    if made_before_wrapping:
        scheduler = torch.optim.lr_scheduler.StepLR(plain, 1, 0.5)
        optimizer = hvd.DistributedOptimizer(plain)
    else:
        optimizer = hvd.DistributedOptimizer(plain)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    other = cases.sgd(expected.parameters())
    other_scheduler = torch.optim.lr_scheduler.StepLR(other, 1, 0.5)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in batches:
            cases.train(model, optimizer, [cases.share(batch)])
            scheduler.step()
            cases.train(expected, other, [batch])
            other_scheduler.step()

    assert optimizer.param_groups[0]["lr"] == 0.1 / 16
    cases.assert_same_parameters(model, expected)


@since(2, 4, "step hooks beside an imported compiler")
def test_step_hooks_of_torch_run_once() -> None:
    model = cases.make_model()
    plain = cases.sgd(model.parameters())
    calls: list[str] = []
    plain.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer = hvd.DistributedOptimizer(plain)
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))

    cases.train(model, optimizer, [cases.share(cases.make_batches(1)[0])])

    assert calls == ["before", "after"]


def test_optimizer_state_can_be_broadcast(rank: int) -> None:
    batches = cases.make_batches(3)
    model = cases.make_model()
    plain = torch.optim.SGD(model.parameters(), lr=0.1 if rank == 0 else 5.0, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters())

    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    cases.train(model, optimizer, [cases.share(batch) for batch in batches])

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))
