"""Derivatives of the operations, also under torch.func."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import grad, jacrev, jvp, vmap
from torch_cases import assert_same, everybody

import horovod.torch as hvd

# torch compiles its own forward-mode formulas with what it deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")


def weighted(tensor: torch.Tensor) -> torch.Tensor:
    """Make a loss whose gradient differs by place."""
    return (tensor * torch.arange(1.0, tensor.numel() + 1).reshape(tensor.shape)).sum()


def weights(*shape: int) -> torch.Tensor:
    return torch.arange(1.0, torch.Size(shape).numel() + 1).reshape(shape)


@pytest.mark.parametrize("op", ["Sum", "Average"])
def test_allreduce(op: str, rank: int, size: int) -> None:
    tensor = torch.full((2, 3), float(rank), requires_grad=True)

    hvd.allreduce(tensor, op=getattr(hvd, op), prescale_factor=2.0).backward(torch.full((2, 3), rank + 1.0))

    total = size * (size + 1) / 2
    expected = total * 2 / (1 if op == "Sum" else size)
    assert_same(tensor.grad, torch.full((2, 3), expected))


def test_gradient_that_is_not_contiguous(size: int) -> None:
    tensor = torch.ones(3, requires_grad=True)

    hvd.allreduce(tensor, op=hvd.Sum).sum().backward()

    assert tensor.grad.tolist() == [size] * 3


def test_allreduce_with_compression(size: int) -> None:
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
        for dtype in (torch.float32, torch.float64):
            tensor = torch.ones(3, dtype=dtype, requires_grad=True)
            hvd.allreduce(tensor, op=hvd.Sum, compression=compression).sum().backward()
            assert tensor.grad.tolist() == [size] * 3


def test_grouped_allreduce(rank: int, size: int) -> None:
    tensors = [torch.ones(2, requires_grad=True), torch.ones(3, 2, requires_grad=True)]

    results = hvd.grouped_allreduce(tensors, op=hvd.Sum)
    sum(result.sum() for result in results).backward()

    for tensor in tensors:
        assert_same(tensor.grad, torch.full(tensor.shape, float(size)))


def test_allgather(rank: int) -> None:
    tensor = torch.zeros(rank + 1, 2, requires_grad=True)
    rows = sum(r + 1 for r in everybody())
    start = sum(r + 1 for r in range(rank))

    hvd.allgather(tensor).backward(weights(rows, 2))

    assert_same(tensor.grad, weights(rows, 2)[start : start + rank + 1])


def test_grouped_allgather(rank: int) -> None:
    tensors = [torch.zeros(rank + 1, requires_grad=True), torch.zeros(2, requires_grad=True)]

    results = hvd.grouped_allgather(tensors)
    sum(weighted(result) for result in results).backward()

    start = sum(r + 1 for r in range(rank))
    assert_same(tensors[0].grad, weights(rank + 1) + start)
    assert_same(tensors[1].grad, weights(2) + 2 * rank)


def test_broadcast(rank: int, size: int) -> None:
    root = size - 1
    tensor = torch.zeros(3, requires_grad=True)

    hvd.broadcast(tensor, root).backward(torch.full((3,), rank + 1.0))

    expected = (size + 1) / 2 if rank == root else 0.0
    assert_same(tensor.grad, torch.full((3,), expected))


def test_alltoall(rank: int, size: int) -> None:
    rows = sum(rank + i for i in range(size))
    tensor = torch.zeros(rows + 2, requires_grad=True)

    output, received = hvd.alltoall(tensor, [rank + i for i in range(size)])
    output.backward(torch.full_like(output, rank + 1.0))

    assert not received.requires_grad
    expected = torch.cat([torch.full((rank + i,), i + 1.0) for i in range(size)] + [torch.zeros(2)])
    assert_same(tensor.grad, expected)


@pytest.mark.parametrize("op", ["Sum", "Average"])
def test_reducescatter(op: str, rank: int, size: int) -> None:
    tensor = torch.zeros(2 * size + 1, requires_grad=True)

    output = hvd.reducescatter(tensor, op=getattr(hvd, op), postscale_factor=3.0)
    output.backward(torch.full_like(output, rank + 1.0))

    factor = 3.0 * (size if op == "Sum" else 1)
    rows = [3 if r == 0 else 2 for r in range(size)]
    expected = torch.cat([torch.full((n,), (r + 1) * factor) for r, n in enumerate(rows)])
    assert_same(tensor.grad, expected)


def test_grouped_reducescatter(rank: int, size: int) -> None:
    tensors = [torch.zeros(size, requires_grad=True), torch.zeros(size, 2, requires_grad=True)]

    results = hvd.grouped_reducescatter(tensors, op=hvd.Sum)
    sum(result.sum() * (rank + 1) for result in results).backward()

    for tensor in tensors:
        expected = torch.arange(1.0, size + 1).mul(size).reshape(-1, *[1] * (tensor.dim() - 1))
        assert_same(tensor.grad, expected.expand(tensor.shape).contiguous())


def test_no_graph_where_none_is_needed() -> None:
    parameter = torch.ones(2, requires_grad=True)

    with torch.no_grad():
        assert hvd.allreduce(parameter).grad_fn is None
        assert hvd.allgather(parameter).grad_fn is None
    assert hvd.allreduce(parameter.detach()).grad_fn is None
    assert hvd.allreduce(parameter).grad_fn is not None


def test_double_backward(rank: int, size: int) -> None:
    tensor = torch.tensor([1.0, 2.0], requires_grad=True)

    loss = hvd.allreduce(tensor**3, op=hvd.Sum).sum()
    (first,) = torch.autograd.grad(loss, tensor, create_graph=True)
    hvd.allreduce(first, op=hvd.Sum).sum().backward()

    assert_same(tensor.grad, 6 * torch.tensor([1.0, 2.0]) * size * size)


OPERATIONS = {
    "allreduce": lambda x: hvd.allreduce(x, op=hvd.Sum),
    "grouped_allreduce": lambda x: hvd.grouped_allreduce([x, x], op=hvd.Sum)[1],
    "allgather": hvd.allgather,
    "grouped_allgather": lambda x: hvd.grouped_allgather([x, x])[0],
    "broadcast": lambda x: hvd.broadcast(x, 0),
    "alltoall": hvd.alltoall,
    "alltoall_splits": lambda x: hvd.alltoall(x, [2] * hvd.size())[0],
    "reducescatter": lambda x: hvd.reducescatter(x, op=hvd.Sum),
    "grouped_reducescatter": lambda x: hvd.grouped_reducescatter([x, x], op=hvd.Sum)[0],
}


@pytest.fixture(params=list(OPERATIONS))
def operation(request: pytest.FixtureRequest) -> object:
    return OPERATIONS[request.param]


def input_rows(rank: int) -> torch.Tensor:
    return torch.arange(2.0 * hvd.size()) + 10 * rank


class TestFunctional:
    """torch.func on every operation, against plain autograd or a loop."""

    def test_grad(self, operation, rank: int) -> None:
        def loss(x: torch.Tensor) -> torch.Tensor:
            return (operation(x**2) ** 2).sum()

        plain = input_rows(rank).requires_grad_()
        loss(plain).backward()

        assert_same(grad(loss)(input_rows(rank)), plain.grad)

    def test_vmap(self, operation, rank: int) -> None:
        batch = torch.stack([input_rows(rank) * k for k in (1, 2, 3)])

        result = vmap(operation)(batch)
        moved = vmap(operation, in_dims=1)(batch.t())

        expected = torch.stack([operation(row.contiguous()) for row in batch])
        assert_same(result, expected)
        assert_same(moved, expected)

    def test_vmap_of_grad(self, operation, rank: int) -> None:
        batch = torch.stack([input_rows(rank) * k for k in (1, 2)])

        def loss(x: torch.Tensor) -> torch.Tensor:
            return (operation(x) ** 2).sum()

        result = vmap(grad(loss))(batch)

        assert_same(result, torch.stack([grad(loss)(row) for row in batch]))

    def test_jvp(self, operation, rank: int) -> None:
        primal, tangent = input_rows(rank), torch.ones(2 * hvd.size()) * (rank + 1)

        output, derivative = jvp(operation, (primal,), (tangent,))

        assert_same(output, operation(primal))
        assert_same(derivative, operation(tangent))

    def test_forward_mode(self, operation, rank: int) -> None:
        tangent = torch.ones(2 * hvd.size()) * (rank + 1)
        with forward_ad.dual_level():
            output = operation(forward_ad.make_dual(input_rows(rank), tangent))
            derivative = forward_ad.unpack_dual(output).tangent

        assert_same(derivative, operation(tangent))

    def test_jacrev(self, operation, rank: int) -> None:
        jacobian = jacrev(operation)(input_rows(rank))

        rows = operation(input_rows(rank)).shape[0]
        # jacrev sends one unit vector per row of this rank's output, so ranks need equally many.
        assert tuple(jacobian.shape) == (rows, 2 * hvd.size())


def test_vmap_of_adasum() -> None:
    batch = torch.stack([torch.arange(1.0, 4.0), torch.ones(3)])

    result = vmap(lambda x: hvd.allreduce(x, op=hvd.Adasum))(batch)

    torch.testing.assert_close(result, batch)


def test_forward_derivative_of_a_maximum_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="op=Sum and op=Average"):
        jvp(lambda x: hvd.allreduce(x, op=hvd.Max), (torch.ones(2),), (torch.ones(2),))
