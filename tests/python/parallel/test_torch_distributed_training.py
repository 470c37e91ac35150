"""DDP, ZeRO, FSDP, tensor parallel and functional collectives train as one process does."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch_distributed_world import world  # noqa: F401
from torch_models import assert_equal_models, batch, loss_of, make_model, part, train_alone
from torch_releases import needs_fsdp2, needs_graphs, since

import horovod.torch as hvd

with contextlib.suppress(ImportError):  # before torch 2.2, where no test uses it
    from torch.distributed.device_mesh import init_device_mesh
with contextlib.suppress(ImportError):  # before torch 2.6, where no test uses them
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

pytestmark = [
    pytest.mark.usefixtures("world"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.01)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 4) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, *part(step, hvd.rank(), hvd.size())).backward()
        optimizer.step()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_as_bucket_view": True},
        {"static_graph": True, "gradient_as_bucket_view": True},
        {"find_unused_parameters": True},
        {"bucket_cap_mb": 0.0005},
    ],
    ids=lambda options: "+".join(options) or "plain",
)
def test_ddp(options: dict[str, Any], size: int) -> None:
    model = DistributedDataParallel(make_model(), **options)

    train(model, sgd(model.parameters()))

    assert_equal_models(model.module, train_alone(size, sgd))


def test_ddp_accumulates_without_communication(size: int, rank: int) -> None:
    model = DistributedDataParallel(make_model())
    with model.no_sync():
        loss_of(model, *part(0, rank, size)).backward()
    loss_of(model, *part(1, rank, size)).backward()

    alone = make_model()
    for step in range(2):
        loss_of(alone, *batch(step, size)).backward()
    for mine, other in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def test_ddp_skips_unused_parameters(rank: int, size: int) -> None:
    class TwoHeads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.heads = nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 2)])

        def forward(self, data: torch.Tensor) -> torch.Tensor:
            return self.heads[rank % 2](data)

    model = DistributedDataParallel(TwoHeads(), find_unused_parameters=True)
    model(torch.ones(1, 3)).sum().backward()

    users = (size + 1) // 2
    assert torch.allclose(model.module.heads[0].weight.grad, torch.full((2, 3), users / size))


@pytest.mark.parametrize("hook", ["allreduce", "fp16", "powerSGD"])
def test_ddp_with_a_communication_hook(hook: str, size: int) -> None:
    model = DistributedDataParallel(make_model())
    if hook == "powerSGD":
        state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, min_compression_rate=0.5)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    else:
        chosen = default_hooks.allreduce_hook if hook == "allreduce" else default_hooks.fp16_compress_hook
        model.register_comm_hook(None, chosen)

    train(model, sgd(model.parameters()))

    if hook == "allreduce":
        assert_equal_models(model.module, train_alone(size, sgd))
    else:
        first = next(model.parameters()).detach().clone()
        dist.broadcast(first, 0)
        assert torch.equal(first, next(model.parameters()))


def test_zero_redundancy_optimizer(size: int) -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer  # warns when it is imported

    model = DistributedDataParallel(make_model())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)

    train(model, optimizer)

    assert_equal_models(model.module, train_alone(size, adam))


@since(2, 2, "FSDP on CPUs")
def test_fsdp1(size: int) -> None:
    model = FullyShardedDataParallel(make_model(), device_id=torch.device("cpu"))

    train(model, adam(model.parameters()))

    with FullyShardedDataParallel.summon_full_params(model):
        assert_equal_models(model.module, train_alone(size, adam))


@needs_fsdp2
def test_fsdp2(size: int) -> None:
    model = make_model()
    mesh = init_device_mesh("cpu", (size,))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)

    train(model, adam(model.parameters()))

    assert_equal_models(model, train_alone(size, adam))


@needs_fsdp2
@pytest.mark.parametrize("kind", ["hybrid sharding", "data x tensor"])
def test_a_mesh_of_two_dimensions(kind: str, rank: int, size: int) -> None:
    if size != 4:
        pytest.skip("a mesh of 2 x 2 needs four ranks")
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    model = make_model()
    if kind == "hybrid sharding":
        fully_shard(model, mesh=mesh)
        optimizer = adam(model.parameters())
        train(model, optimizer)
        assert_equal_models(model, train_alone(size, adam))
        return
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(model, mesh["model"], plan)
    fully_shard(model, mesh=mesh["data"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model, *part(step, rank // 2, 2)).backward()
        optimizer.step()
    expected = train_alone(2, lambda p: torch.optim.SGD(p, lr=0.05), steps=3)
    assert_equal_models(model, expected)


@since(2, 2, "torch.distributed.device_mesh")
def test_tensor_parallel(size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    model = make_model()
    alone = make_model()
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    data, target = batch(0, size)

    loss_of(model, data, target).backward()
    loss_of(alone, data, target).backward()

    for mine, other in zip(model.parameters(), alone.parameters(), strict=True):
        grad = mine.grad.full_tensor() if hasattr(mine.grad, "full_tensor") else mine.grad
        torch.testing.assert_close(grad, other.grad)


@since(2, 6, "torch.distributed.tensor")
def test_dtensor(size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(1)
    left, right = torch.randn(4 * size, 6), torch.randn(6, 2 * size)

    rows = distribute_tensor(left, mesh, [Shard(0)])
    columns = distribute_tensor(right, mesh, [Shard(1)])
    product = rows @ columns.redistribute(mesh, [Replicate()])

    torch.testing.assert_close(product.full_tensor(), left @ right)
    torch.testing.assert_close(product.redistribute(mesh, [Shard(1)]).full_tensor(), left @ right)


def collectives(tensor: torch.Tensor, size: int) -> tuple[torch.Tensor, ...]:
    total = functional.all_reduce(tensor, "sum", dist.group.WORLD)
    gathered = functional.all_gather_tensor(tensor, 0, dist.group.WORLD)
    scattered = functional.reduce_scatter_tensor(gathered, "sum", 0, dist.group.WORLD)
    exchanged = functional.all_to_all_single(gathered, None, None, dist.group.WORLD)
    return total * 2, gathered + 1, scattered / size, exchanged


@since(2, 2, "all_to_all_single of the functional collectives")
@pytest.mark.parametrize("backend", [None, pytest.param("aot_eager", marks=needs_graphs)])
def test_functional_collectives(backend: str | None, rank: int, size: int) -> None:
    call = collectives if backend is None else torch.compile(collectives, backend=backend, fullgraph=True)
    tensor = torch.arange(6.0).view(3, 2) + rank

    total, gathered, scattered, exchanged = call(tensor, size)

    everything = torch.cat([torch.arange(6.0).view(3, 2) + r for r in range(size)])
    torch.testing.assert_close(total, everything.view(size, 3, 2).sum(0) * 2)
    torch.testing.assert_close(gathered, everything + 1)
    torch.testing.assert_close(scattered, tensor)
    torch.testing.assert_close(exchanged, tensor.repeat(size, 1))


@needs_graphs
def test_in_place_all_reduce_in_a_compiled_graph(rank: int, size: int) -> None:
    @torch.compile(backend="aot_eager", fullgraph=True)
    def call(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor + 1
        dist.all_reduce(tensor)
        return tensor * 2

    assert call(torch.tensor([float(rank)])).item() == 2 * (sum(range(size)) + size)


def test_ddp_of_a_compiled_model(size: int) -> None:
    model = DistributedDataParallel(make_model())
    compiled = torch.compile(model, backend="aot_eager")

    train(compiled, sgd(model.parameters()))

    assert_equal_models(model.module, train_alone(size, sgd))


@needs_fsdp2
def test_distributed_checkpoint(rank: int, size: int) -> None:
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict

    # One folder for all ranks, which pytest cannot make.
    made = [tempfile.mkdtemp() if rank == 0 else ""]
    dist.broadcast_object_list(made, src=0)
    folder = Path(made[0])
    mesh = init_device_mesh("cpu", (size,))
    model = fully_shard(make_model(), mesh=mesh)
    train(model, sgd(model.parameters()), steps=2)

    checkpoint.save(get_model_state_dict(model), checkpoint_id=folder)
    other = fully_shard(make_model(), mesh=mesh)
    state = get_model_state_dict(other)
    checkpoint.load(state, checkpoint_id=folder)
    set_model_state_dict(other, state)

    for mine, loaded in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine.to_local(), loaded.to_local())
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder)
