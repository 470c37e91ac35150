"""hvd operations inside graphs that torch.compile makes whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch_cases import everybody
from torch_releases import needs_graphs

import horovod.torch as hvd

pytestmark = [  # the compiler's own
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Skipping serialization of:UserWarning"),
]

Function = Callable[[torch.Tensor], torch.Tensor]


def group(x: torch.Tensor) -> torch.Tensor:
    results = hvd.grouped_allreduce([x, x[:2] * 3, x.t().contiguous()], op=hvd.Sum)
    return torch.cat([result.flatten() for result in results])


def cases(size: int) -> dict[str, Function]:
    return {
        "allreduce": lambda x: hvd.allreduce(x * 2, name="a", op=hvd.Sum) + 1,
        "allreduce_average": lambda x: hvd.allreduce(x.sin()),
        "allreduce_scaled": lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.5, postscale_factor=3.0),
        "allreduce_fp16": lambda x: hvd.allreduce(x, compression=hvd.Compression.fp16),
        "grouped_allreduce": group,
        "allgather": lambda x: hvd.allgather(x * 2).cos(),
        "broadcast": lambda x: hvd.broadcast(x * 2, size - 1) * x,
        "alltoall": lambda x: hvd.alltoall(x.repeat(size, 1)) * 2,
        "reducescatter": lambda x: hvd.reducescatter(x.repeat(size, 1), op=hvd.Sum) * 2,
        "reducescatter_uneven": lambda x: hvd.reducescatter(x.repeat(size, 1)[1:] * 1.0),
    }


@needs_graphs
@pytest.mark.parametrize("name", list(cases(1)))
def test_operations_and_gradients_equal_the_eager_ones(name: str, rank: int, size: int) -> None:
    function = cases(size)[name]
    inputs = [(torch.arange(12.0).view(4, 3) / 10 + rank).requires_grad_() for _ in range(2)]

    eager = function(inputs[0])
    torch.compiler.reset()
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)(inputs[1])
    (eager * torch.arange(1.0, eager.numel() + 1).view(eager.shape)).sum().backward()
    (compiled * torch.arange(1.0, compiled.numel() + 1).view(compiled.shape)).sum().backward()

    torch.testing.assert_close(compiled, eager)
    torch.testing.assert_close(inputs[1].grad, inputs[0].grad)


@needs_graphs
def test_in_place_operations(rank: int, size: int) -> None:
    @torch.compile(backend="aot_eager", fullgraph=True)
    def call(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hvd.allreduce_(x, op=hvd.Sum)
        hvd.broadcast_(y, size - 1)
        return x + y

    x, y = torch.full((3,), float(rank)), torch.full((3,), 10.0 * rank)

    result = call(x, y)

    assert x.tolist() == [float(sum(everybody()))] * 3
    assert y.tolist() == [10.0 * (size - 1)] * 3
    assert torch.equal(result, x + y)


@needs_graphs
def test_alltoall_with_splits(rank: int, size: int) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        output, received = hvd.alltoall(x * 2, splits=[r + 1 for r in range(size)])
        return output + 1, received

    x = torch.arange(float(size * (size + 1) // 2)) + 100 * rank

    eager = function(x)
    compiled = torch.compile(function, backend="aot_eager")(x)

    assert torch.equal(compiled[0], eager[0])
    assert torch.equal(compiled[1], eager[1])


@needs_graphs
def test_a_process_set(rank: int, process_set: hvd.ProcessSet) -> None:
    if not process_set.included():
        return
    call = torch.compile(
        lambda x: hvd.allreduce(x, op=hvd.Sum, process_set=process_set), backend="aot_eager", fullgraph=True
    )

    assert call(torch.tensor([float(rank)])).item() == sum(process_set.ranks)


def test_an_optimizer_around_a_compiled_model(rank: int, size: int) -> None:
    from torch_models import assert_equal_models, loss_of, make_model, part, train_alone

    model = make_model()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.05), named_parameters=model.named_parameters()
    )
    compiled = torch.compile(model, backend="aot_eager")
    for step in range(3):
        optimizer.zero_grad()
        loss_of(compiled, *part(step, rank, size)).backward()
        optimizer.step()

    assert_equal_models(model, train_alone(size, lambda p: torch.optim.SGD(p, lr=0.05), steps=3))


@needs_graphs
def test_the_default_compiler(rank: int, size: int) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        first, second = hvd.grouped_allreduce([x * 2, x.sum(0)], op=hvd.Sum)
        return first + second

    x = torch.arange(6.0).view(2, 3) + rank
    total = torch.stack([torch.arange(6.0).view(2, 3) + r for r in everybody()]).sum(0)

    result = torch.compile(function, fullgraph=True)(x)

    torch.testing.assert_close(result, total * 2 + total.sum(0))


def test_graphs_that_may_be_interrupted(rank: int, size: int) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        total = hvd.allreduce(x * 2, op=hvd.Sum, name="interrupted")
        rows = hvd.allgather(total.sum(0, keepdim=True))
        group = hvd.grouped_allreduce([x, total], op=hvd.Sum)
        return (total + rows.sum() + group[0]).sum()

    inputs = [torch.full((3, 2), rank + 1.0, requires_grad=True) for _ in range(2)]
    eager = function(inputs[0])
    torch._dynamo.reset()  # torch 2.1 warns where another test has used another backend
    compiled = torch.compile(function, backend="eager")(inputs[1])
    eager.backward()
    compiled.backward()

    torch.testing.assert_close(compiled, eager)
    torch.testing.assert_close(inputs[1].grad, inputs[0].grad)
