"""DistributedOptimizer: which parameters take part, in what layout, dtype and form of gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import training_cases as cases
from torch import nn

import horovod.torch as hvd


class Branches(nn.Module):
    """Only one of two branches is used in a forward pass."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.left = nn.Linear(2, 1)
        self.right = nn.Linear(2, 1)

    def forward(self, x: torch.Tensor, *, left: bool) -> torch.Tensor:
        return (self.left if left else self.right)(x).sum()


@pytest.mark.parametrize("groups", [None, 1, 2])
def test_ranks_may_use_different_parameters(rank: int, size: int, groups: int | None) -> None:
    model, expected = Branches(), Branches()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), groups=groups)
    plain = torch.optim.SGD(expected.parameters(), lr=0.1)
    inputs = [torch.full((1, 2), float(r + 1)) for r in range(size)]

    for step in range(3):
        optimizer.zero_grad()
        model(inputs[rank], left=(rank + step) % 2 == 0).backward()
        optimizer.step()
        plain.zero_grad()
        for r in range(size):
            (expected(inputs[r], left=(r + step) % 2 == 0) / size).backward()
        plain.step()

    cases.assert_same_parameters(model, expected)


@pytest.mark.disagreement
def test_parameter_that_no_rank_uses_gets_zeros() -> None:
    model = Branches()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))

    model(torch.ones(1, 2), left=True).backward()
    optimizer.step()

    assert model.right.weight.grad is not None
    assert not model.right.weight.grad.any()


@pytest.mark.parametrize("groups", [None, 4])
def test_parameter_that_no_rank_uses_is_left_alone_if_it_is_not_required(groups: int | None) -> None:
    model = Branches()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), groups=groups)
    optimizer._requires_update = set()

    model(torch.ones(1, 2), left=True).backward()
    optimizer.step()

    assert model.right.weight.grad is None
    gradients = hvd.allgather(model.left.weight.grad)
    torch.testing.assert_close(gradients[:1], gradients[-1:])


def test_group_added_later_takes_part() -> None:
    batches = cases.make_batches(4)
    model, expected = cases.make_model(), cases.make_model()
    first, *later = model.parameters()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([first], lr=0.1, momentum=0.9))
    plain = torch.optim.SGD([next(iter(expected.parameters()))], lr=0.1, momentum=0.9)
    shares = [cases.share(batch) for batch in batches]

    def run(m: nn.Module, o: Any, some: list[cases.Batch]) -> None:
        for batch in some:
            m.zero_grad()
            cases.loss_of(m, batch).backward()
            o.step()

    run(model, optimizer, shares[:2])
    optimizer.add_param_group({"params": later, "lr": 0.05})
    run(model, optimizer, shares[2:])
    run(expected, plain, batches[:2])
    plain.add_param_group({"params": list(expected.parameters())[1:], "lr": 0.05})
    run(expected, plain, batches[2:])

    cases.assert_same_parameters(model, expected)


@pytest.mark.parametrize("groups", [None, 2])
def test_parameter_that_starts_to_need_a_gradient(groups: int | None) -> None:
    batches = cases.make_batches(4)
    model, expected = cases.make_model(), cases.make_model()
    for m in (model, expected):
        m[0].requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()), groups=groups)
    plain = cases.sgd(expected.parameters())

    cases.train(model, optimizer, [cases.share(batch) for batch in batches[:2]])
    cases.train(expected, plain, batches[:2])
    for m in (model, expected):
        m[0].requires_grad_(True)
    cases.train(model, optimizer, [cases.share(batch) for batch in batches[2:]])
    cases.train(expected, plain, batches[2:])

    cases.assert_same_parameters(model, expected)


def test_frozen_parameter_does_not_move() -> None:
    batches = cases.make_batches(4)
    model, expected = cases.make_model(), cases.make_model()

    def decaying(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.1)

    optimizer = hvd.DistributedOptimizer(decaying(model.parameters()))
    plain = decaying(expected.parameters())
    shares = [cases.share(batch) for batch in batches]

    cases.train(model, optimizer, shares[:2])
    cases.train(expected, plain, batches[:2])
    for m, o in ((model, optimizer), (expected, plain)):
        o.zero_grad()
        m[2].requires_grad_(False)
    cases.train(model, optimizer, shares[2:])
    cases.train(expected, plain, batches[2:])

    cases.assert_same_parameters(model, expected)


def test_generator_and_discriminator_take_turns() -> None:
    generator, discriminator = nn.Conv2d(1, 10, 1), nn.Conv2d(10, 1, 1)
    optimizers = [
        hvd.DistributedOptimizer(
            torch.optim.SGD(m.parameters(), lr=0.1),
            named_parameters=[(f"{name}.{n}", p) for n, p in m.named_parameters()],
        )
        for name, m in (("generator", generator), ("discriminator", discriminator))
    ]

    for turn in range(6):
        for index, module in enumerate((generator, discriminator)):
            module.requires_grad_(turn % 2 == index)
            optimizers[index].zero_grad()
        discriminator(generator(torch.rand(1, 1, 4, 4))).sum().backward()
        optimizers[turn % 2].step()
        assert next(iter((generator, discriminator)[1 - turn % 2].parameters())).grad is None


@pytest.mark.parametrize("groups", [None, 1])
def test_channels_last(groups: int | None, rank: int, size: int) -> None:
    def make() -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 2, 1)).to(memory_format=torch.channels_last)

    model, expected = make(), make()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), groups=groups)
    plain = torch.optim.SGD(expected.parameters(), lr=0.1)
    data = torch.randn(2 * size, 3, 5, 5).to(memory_format=torch.channels_last)

    for step in range(3):
        for m, o, x in ((model, optimizer, data[2 * rank : 2 * rank + 2]), (expected, plain, data)):
            o.zero_grad(set_to_none=step % 2 == 0)
            m(x).square().mean().backward()
            o.step()

    assert model[0].weight.grad.is_contiguous(memory_format=torch.channels_last)
    cases.assert_same_parameters(model, expected)


@pytest.mark.disagreement
def test_gradients_that_lie_differently_on_each_rank(rank: int, size: int) -> None:
    parameter = nn.Parameter(torch.zeros(4, 6))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0))
    values = torch.arange(24.0).reshape(4, 6)

    for _ in range(2):
        gradient = (values * (rank + 1)).clone()
        parameter.grad = gradient.t().contiguous().t() if rank == 0 else gradient
        optimizer.step()
        expected = values * sum(range(1, size + 1)) / size
        torch.testing.assert_close(parameter.grad, expected)


def test_model_converted_after_wrapping() -> None:
    batches = cases.make_batches(4, torch.float64)
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    first = [(x.float(), y.float()) for x, y in map(cases.share, batches[:2])]

    cases.train(model, optimizer, first)
    model.double()
    cases.train(model, optimizer, [cases.share(batch) for batch in batches[2:]])

    expected = cases.train_alone(lambda p: torch.optim.SGD(p, lr=0.1), batches)
    cases.assert_same_parameters(model, expected, atol=1e-5)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64]
)
@pytest.mark.parametrize("groups", [None, 1])
def test_dtypes_of_gradients(dtype: torch.dtype, groups: int | None, rank: int, size: int) -> None:
    parameter = nn.Parameter(torch.zeros(3, dtype=dtype))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), groups=groups)

    for _ in range(2):
        parameter.grad = torch.full((3,), rank + 1, dtype=dtype)
        optimizer.step()
        wanted = torch.full((3,), sum(range(1, size + 1)) / size, dtype=dtype)
        torch.testing.assert_close(parameter.grad, wanted)


@pytest.mark.parametrize("groups", [None, 1])
def test_group_of_several_dtypes(groups: int | None, rank: int, size: int) -> None:
    parameters = [nn.Parameter(torch.zeros(3, dtype=d)) for d in (torch.float32, torch.float64)]
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(parameters, lr=1.0), groups=groups, compression=hvd.Compression.fp16
    )

    for p in parameters:
        p.grad = torch.full((3,), rank + 1, dtype=p.dtype)
    optimizer.step()

    for p in parameters:
        assert p.grad is not None
        wanted = torch.full((3,), sum(range(1, size + 1)) / size, dtype=p.dtype)
        torch.testing.assert_close(p.grad, wanted, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("groups", [None, 1])
@pytest.mark.parametrize("sparse_as_dense", [False, True])
def test_sparse_gradients(groups: int | None, sparse_as_dense: bool, rank: int, size: int) -> None:
    def make() -> nn.Embedding:
        torch.manual_seed(5)
        return nn.Embedding(10, 3, sparse=True)

    def rows(r: int) -> torch.Tensor:
        return torch.tensor([1, 2, 4, 5, r, r] if r == 0 else [1, 3, r % 10])

    model, expected = make(), make()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), groups=groups, sparse_as_dense=sparse_as_dense
    )
    plain = torch.optim.SGD(expected.parameters(), lr=0.1)

    for _ in range(3):
        optimizer.zero_grad()
        model(rows(rank)).square().sum().backward()
        optimizer.step()
        plain.zero_grad()
        sum(expected(rows(r)).square().sum() / size for r in range(size)).backward()
        plain.step()
        assert model.weight.grad is not None
        assert model.weight.grad.is_sparse

    cases.assert_same_parameters(model, expected)


def test_sparse_adam_takes_the_result(rank: int) -> None:
    for sparse_as_dense in (False, True):
        model = nn.Embedding(10, 3, sparse=True)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SparseAdam(list(model.parameters()), lr=0.1), sparse_as_dense=sparse_as_dense
        )
        rows = torch.tensor([[1, 2, 4, 5], [4, 3, 2, 9]] if rank == 0 else [[1, 3, 4], [4, 7, 9]])

        optimizer.zero_grad()
        model(rows).sum().backward()
        optimizer.step()


class Halving(hvd.Compression.none):
    """A compressor of the user's: sends halves in float64."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return tensor.double() / 2, tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return (tensor * 2).to(ctx)


@pytest.mark.parametrize("groups", [None, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("compression", "tolerance"),
    [(hvd.Compression.fp16, 2e-3), (hvd.Compression.bf16, 2e-2), (Halving, 1e-6)],
)
def test_compression(compression: Any, tolerance: float, dtype: torch.dtype, groups: int | None) -> None:
    batches = cases.make_batches(3, dtype)

    model = cases.train_distributed(cases.sgd, batches, compression=compression, groups=groups)

    expected = cases.train_alone(cases.sgd, batches)
    cases.assert_same_parameters(model, expected, atol=tolerance, rtol=tolerance)
    cases.assert_equal_on_all_ranks(model)


@pytest.mark.disagreement
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch warns that create_graph keeps a cycle
def test_create_graph(rank: int, size: int) -> None:
    parameter = nn.Parameter(torch.tensor([2.0]))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=0.1))

    (parameter**3 * (rank + 1)).sum().backward(create_graph=True)
    optimizer.step()

    mean = sum(range(1, size + 1)) / size
    torch.testing.assert_close(parameter.detach(), torch.tensor([2.0 - 0.1 * 12 * mean]))
    optimizer.zero_grad()


def test_gradient_penalty_trains_like_one_process() -> None:
    batches = cases.make_batches(3)
    model, expected = cases.make_model(), cases.make_model()

    def penalized(m: nn.Module, batch: cases.Batch) -> torch.Tensor:
        x = batch[0].clone().requires_grad_()
        (slope,) = torch.autograd.grad(m(x).sum(), x, create_graph=True)
        return cases.loss_of(m, batch) + slope.square().mean()

    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    plain = cases.sgd(expected.parameters())
    for batch in batches:
        for m, o, b in ((model, optimizer, cases.share(batch)), (expected, plain, batch)):
            o.zero_grad()
            penalized(m, b).backward()
            o.step()

    cases.assert_same_parameters(model, expected)


@pytest.mark.parametrize("way", ["gradient", "memory"])
@pytest.mark.parametrize("options", [{}, {"groups": 1}, {"compression": hvd.Compression.fp16}], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_that_is_replaced_before_the_step_is_still_that_of_all_ranks(
    way: str, options: dict[str, Any], dtype: torch.dtype, rank: int, size: int
) -> None:
    parameter = nn.Parameter(torch.zeros(3, 2, dtype=dtype))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), **options)

    for _ in range(3):
        optimizer.zero_grad()
        (parameter * rank).sum().backward()
        assert parameter.grad is not None
        if way == "gradient":
            parameter.grad = parameter.grad + 1
        else:
            parameter.grad.data = parameter.grad.data + 1
        optimizer.step()

    mean = (size - 1) / 2
    torch.testing.assert_close(parameter.detach(), torch.full_like(parameter, -3 * mean))


def test_gradient_that_is_taken_away_before_the_step_stays_away(rank: int) -> None:
    parameter = nn.Parameter(torch.ones(2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0))

    (parameter * rank).sum().backward()
    parameter.grad = None
    optimizer.step()

    assert torch.equal(parameter.detach(), torch.ones(2))
