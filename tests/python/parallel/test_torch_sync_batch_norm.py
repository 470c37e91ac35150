"""SyncBatchNorm: ranks with their own batches normalize like one process with all of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_releases import since

import horovod.torch as hvd

CHANNELS = 3
SHAPES = [(), (5,), (4, 3), (2, 3, 2)]


def all_batches(rows: list[int], shape: tuple[int, ...], dtype: torch.dtype) -> list[Tensor]:
    """Every rank's batch, the same on all ranks."""
    generator = torch.Generator().manual_seed(21)
    return [
        torch.randn(count, CHANNELS, *shape, generator=generator, dtype=torch.float64).add_(index).to(dtype)
        for index, count in enumerate(rows)
    ]


def reference(shape: tuple[int, ...], **options: Any) -> nn.Module:
    kind = {0: nn.BatchNorm1d, 1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[len(shape)]
    return kind(CHANNELS, **options)


def same_weights(one: nn.Module, other: nn.Module) -> None:
    if one.weight is not None:
        with torch.no_grad():
            one.weight.copy_(torch.tensor([0.5, 1.5, -2.0]))
            one.bias.copy_(torch.tensor([0.1, -0.2, 0.3]))
    other.load_state_dict(one.state_dict())


def run(module: nn.Module, batch: Tensor) -> tuple[Tensor, Tensor]:
    batch = batch.clone().requires_grad_()
    output = module(batch)
    # Weighted by place, so that the gradient is not the same everywhere.
    (
        output.double().square() * torch.linspace(0.5, 1.5, CHANNELS).view(-1, *[1] * (batch.dim() - 2))
    ).sum().backward()
    assert batch.grad is not None
    return output.detach(), batch.grad


OPTIONS: list[dict[str, Any]] = [
    {},
    {"affine": False},
    {"momentum": None},
    {"momentum": 0.5, "eps": 1e-3},
    {"track_running_stats": False},
]


@pytest.mark.parametrize(
    ("shape", "options"),
    [(shape, {}) for shape in SHAPES] + [((4, 3), options) for options in OPTIONS[1:]],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", ["even", "uneven", "empty"])
def test_equals_one_process_with_the_whole_batch(
    shape: tuple[int, ...], options: dict[str, Any], dtype: torch.dtype, rows: str, rank: int, size: int
) -> None:
    counts = {
        "even": [4] * size,
        "uneven": [2 + r for r in range(size)],
        "empty": [3 + r for r in range(size - 1)] + [0 if size > 1 else 3],
    }[rows]
    module = hvd.SyncBatchNorm(CHANNELS, **options).to(dtype)
    expected = reference(shape, **options).to(dtype)
    same_weights(module, expected)
    tolerance = {"atol": 2e-5, "rtol": 2e-5} if dtype is torch.float32 else {"atol": 1e-10, "rtol": 1e-10}
    begin, end = sum(counts[:rank]), sum(counts[: rank + 1])

    for _ in range(2):
        batches = all_batches(counts, shape, dtype)
        output, gradient = run(module, batches[rank])
        whole_output, whole_gradient = run(expected, torch.cat(batches))

        torch.testing.assert_close(output, whole_output[begin:end], **tolerance)
        torch.testing.assert_close(gradient, whole_gradient[begin:end], **tolerance)
        if module.weight is not None:
            for own, whole in ((module.weight, expected.weight), (module.bias, expected.bias)):
                total = hvd.allreduce(own.grad, op=hvd.Sum)
                torch.testing.assert_close(total, whole.grad, atol=1e-3, rtol=1e-4)
                own.grad = whole.grad = None
        for name, buffer in expected.named_buffers():
            torch.testing.assert_close(module.get_buffer(name), buffer, **tolerance)

    module.eval()
    expected.eval()
    sample = all_batches([2], shape, dtype)[0]
    torch.testing.assert_close(module(sample), expected(sample), **tolerance)


@pytest.mark.parametrize(("mean", "tolerance"), [(1e3, 1e-3), (1e5, 3e-2)])
def test_large_means_keep_their_variance(mean: float, tolerance: float, rank: int, size: int) -> None:
    module = hvd.SyncBatchNorm(CHANNELS, momentum=1.0)
    batches = [batch.add(mean) for batch in all_batches([50] * size, (), torch.float32)]

    module(batches[rank])

    whole = torch.cat(batches).double()
    torch.testing.assert_close(module.running_var.double(), whole.var(0), rtol=tolerance, atol=0)
    torch.testing.assert_close(module.running_mean.double(), whole.mean(0), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    "dtype",
    [pytest.param(torch.float16, marks=since(2, 2, "float16 in batch_norm on CPUs")), torch.bfloat16],
)
def test_half_precision_input(dtype: torch.dtype, rank: int, size: int) -> None:
    module = hvd.SyncBatchNorm(CHANNELS)
    batches = all_batches([4] * size, (5,), dtype)

    output, gradient = run(module, batches[rank])

    whole, _ = run(nn.BatchNorm1d(CHANNELS), torch.cat(batches).float())
    assert output.dtype is dtype
    assert gradient.dtype is dtype
    torch.testing.assert_close(output.float(), whole[4 * rank : 4 * rank + 4], atol=3e-2, rtol=3e-2)


def test_trains_inside_of_a_distributed_optimizer(rank: int, size: int) -> None:
    def make(norm: nn.Module) -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(2, CHANNELS, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(27, 1))

    model, expected = make(hvd.SyncBatchNorm(CHANNELS)), make(nn.BatchNorm2d(CHANNELS))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    plain = torch.optim.SGD(expected.parameters(), lr=0.1)
    data = torch.randn(4 * size, 2, 5, 5, generator=torch.Generator().manual_seed(1))

    for _ in range(3):
        for m, o, x in ((model, optimizer, data[4 * rank : 4 * rank + 4]), (expected, plain, data)):
            o.zero_grad()
            m(x).square().mean().backward()
            o.step()

    for own, whole in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(own, whole, atol=1e-5, rtol=1e-4)


def test_input_of_one_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        hvd.SyncBatchNorm(CHANNELS)(torch.zeros(3))


def test_frozen_weights_and_input_without_gradient(rank: int) -> None:
    module = hvd.SyncBatchNorm(CHANNELS)
    module.weight.requires_grad_(False)

    module(torch.randn(4, CHANNELS) + rank).sum().backward()

    assert module.weight.grad is None
    assert module.bias.grad is not None
