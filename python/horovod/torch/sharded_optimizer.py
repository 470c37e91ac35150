"""ZeRO-1: every rank keeps the optimizer state of its share of the parameters, and updates that.

A step is a reducescatter of the gradients, the wrapped optimizer's own step on the shard, and an
allgather of the parameters: the traffic of one allreduce, with a state of 1/N of the memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from horovod._core import _native, codes
from horovod._core.process_sets import ProcessSet, global_process_set, registered_id

from ._sharded_buckets import Bucket, Part, make_buckets, run
from ._sharded_state import gather_bucket, scatter_bucket

# Their update of an element depends on other elements, or on the shape of the parameter.
_NOT_ELEMENTWISE = {"LBFGS", "SparseAdam", "Adafactor", "Muon"}


class ShardedOptimizer(torch.optim.Optimizer):
    """Wraps an optimizer, or makes one of a class, and shards its state over the ranks.

    ::

        optimizer = hvd.ShardedOptimizer(torch.optim.AdamW(model.parameters(), lr=1e-3))
        optimizer = hvd.ShardedOptimizer(torch.optim.AdamW, model.parameters(), lr=1e-3)

    The optimizer must update each element by itself (SGD, Adam, AdamW, Adagrad and most others do).
    Parameters must be equal on all ranks (see hvd.broadcast_parameters); one without a gradient
    counts as having a gradient of zeros. Gradients stay as the ranks computed them: clip with
    clip_grad_norm_ of this class. GradScaler and lr schedulers are used as ever.

    Arguments:
        optimizer: an optimizer, or a class of optimizers.
        params: for a class: the parameters, or groups of them.
        op: Average or Sum.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: an option that is refused.

    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer | type[torch.optim.Optimizer],
        params: Iterable[Any] | None = None,
        *,
        op: int = codes.AVERAGE,
        process_set: ProcessSet = global_process_set,
        **defaults: Any,
    ) -> None:
        """Shard what the optimizer has; `params` and `defaults` are for a class."""
        inner = _instance(optimizer, params, defaults)
        if op not in (codes.AVERAGE, codes.SUM):
            message = f"ShardedOptimizer: expected op Average or Sum, got {codes.REDUCE_OP_NAMES[op]}"
            raise ValueError(message)
        self.process_set = process_set
        self._part = _part_of(process_set)
        if self._part.size < 1:
            message = "ShardedOptimizer: call hvd.init() first, on a member of the process set"
            raise ValueError(message)
        self._op = op
        self._inner = inner
        self._originals: list[list[torch.nn.Parameter]] = []
        self._buckets: list[list[Bucket]] = []
        self._is_fresh = False  # backward has run since gradients were reduced
        self._is_reduced = False  # shards hold gradients, and the groups show the shards
        self._consolidated: dict[str, Any] | None = None
        self._scratch: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}
        self._is_starting = True
        super().__init__([torch.zeros(1)], inner.defaults)  # hooks; nothing is added
        self._is_starting = False
        whole_state = inner.state_dict() if inner.state else None
        inner.state.clear()
        for group in inner.param_groups:
            self._shard_group(group)
        if whole_state is not None:
            self.load_state_dict(whole_state)

    # ---- parameters

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups of the wrapped optimizer.

        After backward, somebody who looks wants gradients that are reduced (GradScaler does): then
        the groups have the shards, until the step or zero_grad.
        """
        if self._is_fresh:
            self._reduce()
            self._agree_about_overflow()
        return self._inner.param_groups

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        if not self._is_starting:
            self._inner.param_groups = groups

    @property
    def state(self) -> Any:
        """The state of this rank's shards."""
        return self._inner.state

    @state.setter
    def state(self, state: Any) -> None:
        if not self._is_starting:
            self._inner.state = state

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, on all ranks."""
        if self._is_starting:
            return
        self._inner.add_param_group(param_group)
        self._shard_group(self._inner.param_groups[-1])

    def _shard_group(self, group: dict[str, Any]) -> None:
        originals = list(group["params"])
        for parameter in originals:
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self._on_gradient)
        self._originals.append(originals)
        self._buckets.append(make_buckets(originals, self._part))

    def _on_gradient(self, _: torch.Tensor) -> None:
        self._is_fresh = True

    def _all_buckets(self) -> list[Bucket]:
        return [bucket for buckets in self._buckets for bucket in buckets]

    # ---- gradients

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of the parameters and of the shards."""
        self._show_originals()
        self._is_fresh = False
        for bucket in self._all_buckets():
            bucket.shard.grad = None
        self._inner.zero_grad(set_to_none)

    def _reduce(self) -> None:
        self._is_fresh = False
        for group, buckets in zip(self._inner.param_groups, self._buckets, strict=True):
            for bucket in buckets:
                bucket.adopt()
                bucket.reduce_gradients(self._scratch_for(bucket), self._op)
            group["params"] = [bucket.shard for bucket in buckets]
        self._is_reduced = True

    def _scratch_for(self, bucket: Bucket) -> torch.Tensor:
        kind = (bucket.flat.dtype, bucket.flat.device)
        scratch = self._scratch.get(kind)
        if scratch is None or scratch.numel() < bucket.flat.numel():
            scratch = self._scratch[kind] = torch.empty_like(bucket.flat)
        return scratch

    def _show_originals(self) -> None:
        self._is_reduced = False
        for group, originals in zip(self._inner.param_groups, self._originals, strict=True):
            group["params"] = list(originals)

    @torch.no_grad()
    def _agree_about_overflow(self) -> None:
        """A value that is not finite in one rank's shard makes all ranks see one."""
        gradients = [b.shard.grad for b in self._all_buckets() if b.shard.grad is not None]
        largest = [torch.linalg.vector_norm(grad, math.inf) for grad in gradients]
        finite = all(math.isfinite(value) for value in largest)
        if self._sum_over_ranks(0.0 if finite else 1.0) > 0:
            for grad in gradients:
                grad[:1] = math.inf

    def _sum_over_ranks(self, value: float) -> float:
        number = torch.tensor([value], dtype=torch.float64)
        run(codes.ALLREDUCE, number, number, (1, 1), self._part)
        return float(number.item())

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        """Reduce the gradients, and clip them by their norm over all parameters and ranks.

        Call it between backward and step, on all ranks, in place of torch.nn.utils.clip_grad_norm_.
        """
        if self._is_fresh or not self._is_reduced:
            self._reduce()
        shards = [b.shard.grad for b in self._all_buckets() if b.shard.grad is not None]
        norms = [torch.linalg.vector_norm(grad.double(), norm_type) for grad in shards]
        if math.isinf(norm_type):
            mine = torch.stack(norms).max().reshape(1, 1) if norms else torch.zeros(1, 1).double()
            everyone = torch.empty(self._part.size, 1, dtype=torch.float64)
            run(codes.ALLGATHER, mine.cpu(), everyone, (1, 1), self._part)
            total = float(everyone.max())
        else:
            powers = sum(float(norm) ** norm_type for norm in norms)
            total = self._sum_over_ranks(powers) ** (1.0 / norm_type)
        factor = min(1.0, max_norm / (total + 1e-6))
        for grad in shards:
            grad.mul_(factor)
        return torch.tensor(total, dtype=torch.float32)

    # ---- steps

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Reduce, update this rank's shards, and share the result."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._is_fresh or not self._is_reduced:
            self._reduce()
        self._consolidated = None
        self._inner.step()
        for bucket in self._all_buckets():
            bucket.share_parameters()
        self._show_originals()
        return loss

    # ---- checkpoints

    def consolidate_state_dict(self, to: int | None = 0) -> None:
        """Gather the whole state on one rank of the set (None: on all), for state_dict there.

        To be called by all ranks. The result is that of the wrapped optimizer without sharding: it
        can be loaded with another number of ranks.
        """
        numbers = self._numbers()
        states: dict[int, Any] = {}
        for bucket in self._all_buckets():
            gathered = gather_bucket(bucket, self._inner.state.get(bucket.shard, {}))
            for parameter, state in zip(bucket.parameters, gathered, strict=True):
                if state:
                    states[numbers[id(parameter)]] = state
        groups = [
            {**group, "params": [numbers[id(parameter)] for parameter in originals]}
            for group, originals in zip(self._inner.param_groups, self._originals, strict=True)
        ]
        whole = {"state": dict(sorted(states.items())), "param_groups": groups}
        self._consolidated = whole if to in (None, self._part.rank) else None

    def state_dict(self) -> dict[str, Any]:
        """The state that consolidate_state_dict has gathered since the last step."""
        if self._consolidated is None and self._part.size == 1:
            self.consolidate_state_dict()
        if self._consolidated is None:
            message = (
                "ShardedOptimizer.state_dict: each rank has a part of the state; call "
                "consolidate_state_dict(to=rank) on all ranks first"
            )
            raise RuntimeError(message)
        return self._consolidated

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this rank's part of a whole state, from any number of ranks or from the wrapped class.

        To be called with the same state on all ranks.
        """
        self._show_originals()
        self._consolidated = None
        shapes = [len(group["params"]) for group in state_dict["param_groups"]]
        expected = [len(originals) for originals in self._originals]
        if shapes != expected:
            message = (
                f"ShardedOptimizer.load_state_dict: expected groups of {expected} parameters, got {shapes}"
            )
            raise ValueError(message)
        for mine, given in zip(self._inner.param_groups, state_dict["param_groups"], strict=True):
            mine.update({key: value for key, value in given.items() if key != "params"})
        saved = state_dict["state"]
        numbers = self._numbers()
        for bucket in self._all_buckets():
            states = [saved.get(numbers[id(p)], {}) for p in bucket.parameters]
            state = scatter_bucket(bucket, states)
            if state:
                self._inner.state[bucket.shard] = state

    # ---- another world

    @property
    def place(self) -> tuple[int, int]:
        """Rank and size for which the parameters are cut."""
        return self._part.rank, self._part.size

    def reshard(self) -> None:
        """Cut the parameters for the ranks there are after shutdown and init; the state is dropped."""
        self._show_originals()
        self._is_fresh = False
        self._consolidated = None
        self._part = _part_of(self.process_set)
        self._inner.state.clear()
        self._scratch.clear()
        self._buckets = [make_buckets(originals, self._part) for originals in self._originals]

    def shard_states(self) -> list[tuple[Bucket, dict[str, Any]]]:
        """Each bucket with the state of this rank's shard, which may be changed in place."""
        return [(bucket, self._inner.state[bucket.shard]) for bucket in self._all_buckets()]

    def clear_shard_states(self) -> None:
        """Forget the state of this rank's shards."""
        self._inner.state.clear()

    def group_options(self) -> list[dict[str, Any]]:
        """Learning rates and other options, by parameter group."""
        return [
            {key: value for key, value in group.items() if key != "params"}
            for group in self._inner.param_groups
        ]

    def take_group_options(self, options: list[dict[str, Any]]) -> None:
        """The opposite of group_options."""
        for group, given in zip(self._inner.param_groups, options, strict=True):
            group.update(given)

    def _numbers(self) -> dict[int, int]:
        """The number of each parameter in a state_dict."""
        everything = [p for originals in self._originals for p in originals]
        return {id(parameter): number for number, parameter in enumerate(everything)}


def _part_of(process_set: ProcessSet) -> Part:
    number = registered_id(process_set)
    return Part(number, _native.process_set_rank(number), _native.process_set_size(number))


def _instance(
    optimizer: torch.optim.Optimizer | type[torch.optim.Optimizer],
    params: Iterable[Any] | None,
    defaults: dict[str, Any],
) -> torch.optim.Optimizer:
    if isinstance(optimizer, torch.optim.Optimizer):
        if params is not None or defaults:
            message = "ShardedOptimizer: parameters and options belong to a class, got an instance"
            raise ValueError(message)
        made = optimizer
    else:
        if params is None:
            message = f"ShardedOptimizer: {optimizer.__name__} is a class and needs parameters"
            raise ValueError(message)
        make: Any = optimizer
        made = make(params, **defaults)
    name = type(made).__name__
    if name in _NOT_ELEMENTWISE:
        message = (
            f"ShardedOptimizer: {name} does not update elements independently of each other, "
            "so that its state cannot be cut"
        )
        raise ValueError(message)
    return made
