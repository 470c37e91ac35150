"""Batch normalization over the batches of all ranks, on every device.

Forward exchanges one message: each rank's count, mean and sum of squared deviations, merged by
counts, which stays exact for large means and allows batches of different sizes, also empty ones.
Backward exchanges one message too. The gradients of weight and bias stay local; the optimizer
reduces them with all others.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from .mpi_ops import Sum, allgather, allreduce_, size

_CHANNEL_DIM = 1
_MINIMUM_DIMS = 2


class SyncBatchNorm(_BatchNorm):
    """A batch normalization whose mean and variance are those of the whole batch of all ranks.

    Takes the place of BatchNorm1d, 2d and 3d. Outside of training it is an ordinary one.

    Arguments:
        num_features: channels: the second dimension of the input.
        eps: added to the variance.
        momentum: weight of the new batch in the running statistics; None: their plain
            average.
        affine: learn a scale and a shift per channel.
        track_running_stats: keep statistics for evaluation.

    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        """Take the arguments of torch.nn.BatchNorm2d."""
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < _MINIMUM_DIMS:
            message = f"SyncBatchNorm: expected an input of at least 2 dimensions, got {input.dim()}"
            raise ValueError(message)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize over the batches of all ranks in training, else by the running statistics."""
        self._check_input_dim(input)
        uses_batch = self.training or (self.running_mean is None and self.running_var is None)
        if not uses_batch or size() == 1:
            return super().forward(input)
        factor = self._next_average_factor()
        update = self.training and self.track_running_stats
        output: Tensor = _SyncBatchNorm.apply(  # type: ignore[no-untyped-call]
            input,
            self.weight,
            self.bias,
            self.running_mean if update else None,
            self.running_var if update else None,
            self.eps,
            factor,
        )
        return output

    def _next_average_factor(self) -> float:
        """Count the batch; the weight of its statistics in the running ones."""
        if not (self.training and self.track_running_stats):
            return 0.0 if self.momentum is None else self.momentum
        assert self.num_batches_tracked is not None  # noqa: S101 - present with running statistics
        self.num_batches_tracked.add_(1)
        if self.momentum is None:
            return 1.0 / float(self.num_batches_tracked)
        return self.momentum


class _SyncBatchNorm(torch.autograd.Function):
    """Forward and backward by hand: autograd of a collective would exchange more and keep more."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        eps: float,
        factor: float,
    ) -> Tensor:
        count, mean, variance = _global_statistics(input)
        if running_mean is not None and running_var is not None:
            unbiased = variance * (count / max(count - 1.0, 1.0))
            running_mean.lerp_(mean.to(running_mean.dtype), factor)
            running_var.lerp_(unbiased.to(running_var.dtype), factor)
        ctx.count = count
        ctx.eps = eps
        ctx.save_for_backward(input, weight, mean, variance)
        if input.numel() == 0:
            return torch.empty_like(input)
        stats_dtype = _wide(input)
        return functional.batch_norm(
            input,
            mean.to(stats_dtype),
            variance.to(stats_dtype),
            _as(weight, stats_dtype),
            _as(bias, stats_dtype),
            training=False,
            eps=eps,
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        input, weight, mean, variance = ctx.saved_tensors  # noqa: A001
        wide = _wide(input)
        own_scale, own_shift = _sums(grad_output.to(wide), input.to(wide), mean, variance, ctx.eps)
        grad_input = None
        if ctx.needs_input_grad[0]:
            sums = torch.stack((own_scale, own_shift))
            allreduce_(sums, name="sync_batch_norm.backward", op=Sum)
            inverse_std = torch.rsqrt(variance + ctx.eps)
            scale = inverse_std if weight is None else inverse_std * weight.double()
            # The gradient less its mean and less its part along the normalized input, all scaled:
            # linear in gradient and input.
            slope = -scale * inverse_std * sums[0].double() / ctx.count
            offset = -scale * sums[1].double() / ctx.count - slope * mean
            grad_input = (
                (grad_output.to(wide) * _per_channel(scale, input, wide))
                .addcmul_(input.to(wide), _per_channel(slope, input, wide))
                .add_(_per_channel(offset, input, wide))
                .to(input.dtype)
            )
        own = None if weight is None else weight.dtype
        grad_weight = own_scale.to(own) if ctx.needs_input_grad[1] else None
        grad_bias = own_shift.to(own) if ctx.needs_input_grad[2] else None
        return grad_input, grad_weight, grad_bias, None, None, None, None


def _global_statistics(input: Tensor) -> tuple[float, Tensor, Tensor]:
    """Count, mean and biased variance per channel over all ranks, in float64.

    Each rank's own mean and deviations are merged by counts: a sum of squares would lose all digits
    where the mean is large against the deviation.
    """
    channels = input.size(_CHANNEL_DIM)
    count = input.numel() // channels if channels else 0
    own = torch.zeros(2 * channels + 1, dtype=torch.float64, device=input.device)
    if count:
        mean, variance = _own_statistics(input.to(_wide(input)))
        own[0] = count
        own[1 : channels + 1] = mean
        own[channels + 1 :] = variance.double() * count
    everyone = allgather(own.unsqueeze(0), name="sync_batch_norm.statistics")
    counts = everyone[:, :1]
    means, deviations = everyone[:, 1 : channels + 1], everyone[:, channels + 1 :]
    total = float(counts.sum())
    if total == 0:
        message = "SyncBatchNorm: expected at least one value per channel on some rank, got none"
        raise ValueError(message)
    mean = (counts * means).sum(0) / total
    spread = deviations.sum(0) + (counts * (means - mean).square()).sum(0)
    return total, mean, spread / total


def _own_statistics(input: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance per channel of this rank's batch."""
    if input.is_cpu:
        # What torch's own batch normalization uses; three times quicker here than var_mean.
        mean, variance = torch.batch_norm_update_stats(input, None, None, 0.0)
        return mean, variance
    dims = [dim for dim in range(input.dim()) if dim != _CHANNEL_DIM]
    variance, mean = torch.var_mean(input, dims, correction=0)
    return mean, variance


def _wide(tensor: Tensor) -> torch.dtype:
    """The dtype of statistics: at least float32."""
    return torch.promote_types(tensor.dtype, torch.float32)


def _sums(
    gradient: Tensor,
    input: Tensor,
    mean: Tensor,
    variance: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Sums over this rank's batch: gradient times normalized input, and gradient, per channel."""
    dtype = input.dtype
    if input.numel() == 0:
        return torch.zeros_like(mean, dtype=dtype), torch.zeros_like(mean, dtype=dtype)
    # In its form for given statistics, torch's own backward computes just these two.
    _, scale, shift = torch.ops.aten.native_batch_norm_backward(
        gradient,
        input,
        torch.ones_like(mean, dtype=dtype),
        mean.to(dtype),
        variance.to(dtype),
        None,
        None,
        False,
        eps,
        [False, True, True],
    )
    return scale, shift


def _per_channel(values: Tensor, like: Tensor, dtype: torch.dtype) -> Tensor:
    """Shape one value per channel so that it meets `like` along the channels."""
    return values.to(dtype).view(-1, *([1] * (like.dim() - _MINIMUM_DIMS)))


def _as(tensor: Tensor | None, dtype: torch.dtype | None) -> Tensor | None:
    return tensor if tensor is None or dtype is None else tensor.to(dtype)
