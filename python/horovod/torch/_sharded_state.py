"""The state of a sharded optimizer as one would have it without sharding, and back.

What is kept in a checkpoint has the form of the wrapped optimizer's own state_dict: it loads with any
number of ranks, and without this wrapper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ._sharded_buckets import Bucket

State = dict[str, Any]


def gather_bucket(bucket: Bucket, state: Mapping[str, Any]) -> list[State]:
    """The states of the bucket's parameters, in order; a collective operation."""
    result: list[State] = [{} for _ in bucket.parameters]
    for key, value in state.items():
        if not is_elementwise(value, bucket.shard):
            for one in result:
                one[key] = value.clone() if isinstance(value, torch.Tensor) else value
            continue
        whole = bucket.gather(value)
        for one, view in zip(result, bucket.views_of(whole), strict=True):
            one[key] = view.clone()
    return result


@torch.no_grad()
def scatter_bucket(bucket: Bucket, states: list[Mapping[str, Any]]) -> State:
    """What this rank has of the states of the bucket's parameters."""
    result: State = {}
    for key in {key: None for state in states for key in state}:
        values = [state.get(key) for state in states]
        example = next(value for value in values if value is not None)
        fits = [
            isinstance(value, torch.Tensor) and value.shape == parameter.shape and key != "step"
            for value, parameter in zip(values, bucket.parameters, strict=True)
            if value is not None
        ]
        if not all(fits):
            result[key] = _latest(values) if key == "step" else example
            continue
        whole = torch.zeros_like(bucket.flat)
        for value, view in zip(values, bucket.views_of(whole), strict=True):
            if value is not None:
                view.copy_(value)
        result[key] = whole.narrow(0, bucket.begin, bucket.shard_count).clone()
    return result


def is_elementwise(value: Any, shard: torch.Tensor) -> bool:
    """Whether the value has an entry for each element of the shard."""
    return isinstance(value, torch.Tensor) and value.shape == shard.shape and value.dim() > 0


def _latest(values: list[Any]) -> Any:
    """The step count of a bucket: parameters that were not always used lag behind."""
    latest = max((value for value in values if value is not None), key=float)
    return latest.clone() if isinstance(latest, torch.Tensor) else latest
