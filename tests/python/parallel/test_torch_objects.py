"""Objects, parameters and the state of optimizers."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
import pytest
import torch
from torch_cases import assert_same, everybody

import horovod.torch as hvd


def test_broadcast_object(rank: int, size: int) -> None:
    root = size - 1
    mine = {
        "rank": rank,
        "array": np.arange(rank + 3),
        "nested": [("a", {1, 2}), lambda x: x + rank],
    }

    result = hvd.broadcast_object(mine, root_rank=root, name="object")

    if rank == root:
        assert result is mine
    assert result["rank"] == root
    assert result["array"].tolist() == list(range(root + 3))
    assert result["nested"][1](1) == 1 + root


def test_broadcast_object_of_different_types(rank: int) -> None:
    assert hvd.broadcast_object([1, 2, 3] if rank == 0 else None) == [1, 2, 3]


def test_allgather_object(rank: int) -> None:
    mine = {"rank": rank, "payload": "x" * (1000 * rank)}

    result = hvd.allgather_object(mine, name="objects")

    assert [entry["rank"] for entry in result] == everybody()
    assert [len(entry["payload"]) for entry in result] == [1000 * r for r in everybody()]


def test_objects_in_a_process_set(process_set: hvd.ProcessSet, rank: int) -> None:
    if not process_set.included():
        pytest.skip("not a member of the set")
    members = process_set.ranks
    assert members is not None

    assert hvd.allgather_object(rank, process_set=process_set) == members
    assert hvd.broadcast_object(rank, root_rank=members[-1], process_set=process_set) == members[-1]


def model_of(rank: int) -> torch.nn.Module:
    torch.manual_seed(1234 + rank)
    return torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(4, 3)
    )


@pytest.mark.parametrize(
    "params",
    [
        lambda model: model.state_dict(),
        lambda model: model.named_parameters(),
        lambda model: list(model.named_parameters()),
        lambda model: model.parameters(),
        lambda model: list(model.parameters()),
    ],
    ids=["state_dict", "named_parameters", "list of pairs", "parameters", "list"],
)
@pytest.mark.parametrize("channels_last", [False, True])
def test_broadcast_parameters(params: Any, channels_last: bool, rank: int) -> None:
    model = model_of(rank)
    if channels_last and rank % 2:
        model = model.to(memory_format=torch.channels_last)

    hvd.broadcast_parameters(params(model), root_rank=0)

    for mine, root in zip(model.parameters(), model_of(0).parameters(), strict=True):
        assert torch.equal(mine, root)


def test_broadcast_parameters_refuses_what_holds_no_tensors() -> None:
    for wrong in (7, torch.ones(2), {"a": 1}, [("a", 2)]):
        with pytest.raises(ValueError, match="broadcast_parameters"):
            hvd.broadcast_parameters(wrong, root_rank=0)


OPTIMIZERS = sorted(
    name
    for name, entry in vars(torch.optim).items()
    if inspect.isclass(entry)
    and issubclass(entry, torch.optim.Optimizer)
    and entry is not torch.optim.Optimizer
)


def optimizer_case(name: str, seed: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model: torch.nn.Module
    if name == "SparseAdam":
        model = torch.nn.Embedding(5, 3, sparse=True)
    else:
        model = torch.nn.Linear(4, 3, bias=name != "Muon")
    options: dict[str, Any] = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    if name in ("Adam", "AdamW"):
        options["amsgrad"] = True
    return model, getattr(torch.optim, name)(model.parameters(), lr=0.01 * (seed + 1), **options)


def train_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    torch.manual_seed(seed)
    optimizer.zero_grad()
    inputs = torch.tensor([1, 3]) if isinstance(model, torch.nn.Embedding) else torch.randn(6, 4)
    (model(inputs) ** 2).sum().backward()
    optimizer.step()


def assert_equal_states(left: Any, right: Any) -> None:
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert list(left) == list(right)
        for key in left:
            assert_equal_states(left[key], right[key])
    elif isinstance(left, (list, tuple)):
        assert len(left) == len(right)
        for a, b in zip(left, right, strict=True):
            assert_equal_states(a, b)
    elif isinstance(left, torch.Tensor):
        assert torch.equal(left, right)
    else:
        assert left == right


@pytest.mark.parametrize("others_have_state", [False, True])
@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "LBFGS"])
def test_state_of_every_optimizer(name: str, others_have_state: bool, rank: int) -> None:
    root_model, root_optimizer = optimizer_case(name, 0)
    for step in range(3):
        train_step(root_model, root_optimizer, step)
    model, optimizer = optimizer_case(name, rank)
    if rank == 0:
        model, optimizer = root_model, root_optimizer
    elif others_have_state:
        train_step(model, optimizer, 99)
    before = copy.deepcopy(optimizer.state_dict()) if rank == 0 else None
    parameters = [p.detach().clone() for p in model.parameters()]

    hvd.broadcast_optimizer_state(optimizer, root_rank=0, model=model)

    assert_equal_states(optimizer.state_dict(), root_optimizer.state_dict())
    if before is not None:
        assert_equal_states(optimizer.state_dict(), before)
    for parameter, untouched in zip(model.parameters(), parameters, strict=True):
        assert torch.equal(parameter, untouched)
    # And the ranks go on in step.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    train_step(model, optimizer, 7)
    for parameter in model.parameters():
        assert torch.equal(parameter, hvd.broadcast(parameter.detach(), 0))


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "LBFGS"])
def test_fresh_optimizers_stay_fresh_and_get_the_options(name: str, rank: int) -> None:
    _, optimizer = optimizer_case(name, rank)

    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    _, fresh = optimizer_case(name, 0)
    assert_equal_states(optimizer.state_dict(), fresh.state_dict())
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)


def test_gradients_of_fresh_optimizers_are_zero() -> None:
    model = torch.nn.Linear(2, 2)
    model.bias.requires_grad_(requires_grad=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    assert model.weight.grad is not None
    assert_same(model.weight.grad, torch.zeros(2, 2))
    assert model.bias.grad is None


def test_types_of_options_are_kept(rank: int) -> None:
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.Adam(
        [{"params": [parameter], "tag": ["a", rank], "lr": 0.5 + rank}], betas=(0.5, 0.25)
    )

    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    group = optimizer.param_groups[0]
    assert group["tag"] == ["a", 0]
    assert group["lr"] == 0.5
    assert group["betas"] == (0.5, 0.25)
    assert isinstance(group["betas"], tuple)


def test_lbfgs_is_refused() -> None:
    optimizer = torch.optim.LBFGS([torch.nn.Parameter(torch.ones(1))])

    with pytest.raises(ValueError, match="LBFGS"):
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)


def test_different_numbers_of_parameters(rank: int, size: int) -> None:
    if size < 2:
        pytest.skip("one rank agrees with itself")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1)) for _ in range(1 + min(rank, 1))], lr=0.1)

    if rank == 0:
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    else:
        with pytest.raises(ValueError, match=f"rank {rank} has 2 parameters in 1 groups, the root has 1"):
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
