"""What every front end's DistributedOptimizer needs: factors, names, groups and the count of passes.

No framework, no communication: a front end derives its gradients from `Gradient`, reports each
backward pass to a `GradientPlan`, and submits what the plan returns.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")


# ---- options


def scale_factors(*, average: bool, predivide_factor: float) -> tuple[float, float]:
    """Prescale and postscale of a gradient; the core itself divides an average by the set's size."""
    if not average:
        if predivide_factor != 1.0:
            msg = (
                "gradient_predivide_factor not supported with op != Average:"
                f" got a factor of {predivide_factor}"
            )
            raise ValueError(msg)
        return 1.0, 1.0
    return 1.0 / predivide_factor, predivide_factor


def check_backward_passes(count: int) -> None:
    """Refuse a number of passes that no step can reach."""
    if count <= 0:
        msg = f"backward_passes_per_step must be > 0, got {count}"
        raise ValueError(msg)


# ---- names


def find_duplicates(items: Iterable[T]) -> set[T]:
    """Every item that occurs more than once."""
    return {item for item, count in Counter(items).items() if count > 1}


def checked_names(named: Iterable[object]) -> list[tuple[str, Any]]:
    """The (name, parameter) pairs a user gave, or what is wrong with them."""
    pairs = list(named)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:  # noqa: PLR2004 - a pair
            msg = (
                "named_parameters should be a sequence of tuples (name, parameter), usually"
                f" produced by model.named_parameters(); got an entry of type {type(pair).__name__}"
            )
            raise ValueError(msg)
    duplicates = find_duplicates(pair[0] for pair in pairs if isinstance(pair, tuple))
    if duplicates:
        listed = ", ".join(sorted(map(str, duplicates)))
        msg = f"parameter names in named_parameters must be unique; found duplicates: {listed}"
        raise ValueError(msg)
    return [pair for pair in pairs if isinstance(pair, tuple)]


def default_name(group_index: int, parameter_index: int) -> str:
    """The name of a parameter that the user did not name."""
    return f"allreduce.noname.{group_index}.{parameter_index}"


# ---- groups


def check_groups(groups: object, is_parameter: Callable[[object], bool]) -> None:
    """`groups` of DistributedOptimizer: a positive count, or lists of parameters, each in one list."""
    if isinstance(groups, list):
        seen: set[int] = set()
        for group in groups:
            for parameter in group if isinstance(group, (list, tuple)) else (group,):
                if not is_parameter(parameter) or not isinstance(group, (list, tuple)):
                    msg = (
                        "groups must be a list of lists of parameters;"
                        f" got an entry of type {type(parameter).__name__}"
                    )
                    raise ValueError(msg)
                if id(parameter) in seen:
                    msg = "a parameter can only appear once in groups"
                    raise ValueError(msg)
                seen.add(id(parameter))
    elif not isinstance(groups, int) or groups <= 0:
        msg = f"groups should be a positive integer or a list of lists of parameters, got {groups!r}"
        raise ValueError(msg)


def checked_groups(num_groups: int, groups: Any) -> Any:
    """Return `groups`, with the old parameter `num_groups` counted in."""
    if num_groups != 0:
        warnings.warn(
            "Parameter `num_groups` has been replaced by `groups` and will be removed in v0.23.0.",
            DeprecationWarning,
            stacklevel=3,
        )
        if groups is None:
            groups = num_groups
    if groups is not None and not (isinstance(groups, list) or groups > 0):
        message = f"groups should be a non-negative integer or a list of lists of variables, got {groups!r}"
        raise ValueError(message)
    return groups


def split_evenly(items: Sequence[T], count: int) -> list[list[T]]:
    """`count` contiguous parts, the first ones one longer where it does not divide."""
    size, longer = divmod(len(items), count)
    starts = [index * size + min(index, longer) for index in range(count + 1)]
    return [list(items[begin:end]) for begin, end in pairwise(starts)]


def form_groups(
    items: Sequence[T], groups: int | Sequence[Sequence[T]], key: Callable[[T], object] = id
) -> list[list[T]]:
    """The items that are reduced together, in their order; items in no given group stay alone."""
    if isinstance(groups, int):
        return [part for part in split_evenly(items, groups) if part]
    known = {key(item): item for item in items}
    formed = [[known[key(item)] for item in group if key(item) in known] for group in groups]
    grouped = {key(item) for group in formed for item in group}
    alone = [[item] for item in items if key(item) not in grouped]
    return [group for group in formed if group] + alone


# ---- one step


@dataclass(slots=True, eq=False)
class Gradient:
    """One gradient of a step: which passes it still needs, and whether the core has it."""

    name: str
    passes_left: int
    submitted: bool = False
    group: GradientGroup | None = None


@dataclass(slots=True, eq=False)
class GradientGroup:
    """Gradients that are submitted as one operation, when the last of them is complete."""

    members: list[Any]
    incomplete: int = field(default=0)


G = TypeVar("G", bound=Gradient)


class GradientPlan(Generic[G]):
    """Counts backward passes and says what is to be submitted, and what a step still lacks.

    Thread: hooks may come from several threads of a framework, but the caller serializes them.
    """

    def __init__(self, backward_passes: int) -> None:
        """Expect `backward_passes` passes before a gradient is complete."""
        check_backward_passes(backward_passes)
        self.backward_passes = backward_passes
        self.gradients: list[G] = []

    def add(self, gradient: G) -> None:
        """Follow one more gradient."""
        gradient.passes_left = self.backward_passes
        self.gradients.append(gradient)

    def set_groups(self, groups: Iterable[list[G]]) -> None:
        """Submit these together; a group of one is no group to the core, but keeps its group name."""
        for members in groups:
            group = GradientGroup(members, len(members))
            for member in members:
                member.group = group

    def set_backward_passes(self, count: int) -> None:
        """Takes effect at once, for every gradient; those that the core has already stay with it."""
        check_backward_passes(count)
        self.backward_passes = count
        for gradient in self.gradients:
            gradient.passes_left = count
            if gradient.group is not None and not gradient.submitted:
                gradient.group.incomplete = len(gradient.group.members)

    def count_pass(self, gradient: G) -> Sequence[G]:
        """One pass has reached the gradient: what to submit now, usually nothing or itself."""
        if gradient.passes_left <= 0:
            raise AssertionError(self._too_many_passes(gradient))
        gradient.passes_left -= 1
        if gradient.passes_left:
            return ()
        group = gradient.group
        if group is None:
            return (gradient,)
        group.incomplete -= 1
        return group.members if group.incomplete == 0 else ()

    def missing(self) -> list[list[G]]:
        """What a step must still submit: gradients that no pass, or too few passes, have reached."""
        wanted: list[list[G]] = []
        seen: set[int] = set()
        for gradient in self.gradients:
            if gradient.submitted:
                continue
            if gradient.group is None:
                wanted.append([gradient])
            elif id(gradient.group) not in seen:
                seen.add(id(gradient.group))
                wanted.append(gradient.group.members)
        return wanted

    def reset(self) -> None:
        """Start the next step."""
        passes = self.backward_passes
        for gradient in self.gradients:
            gradient.passes_left = passes
            gradient.submitted = False
            if gradient.group is not None:
                gradient.group.incomplete = len(gradient.group.members)

    def _too_many_passes(self, gradient: G) -> str:
        return (
            f"the gradient of '{gradient.name}' was computed more than backward_passes_per_step"
            f" ({self.backward_passes}) times before step() or synchronize(). Increase"
            " backward_passes_per_step to accumulate gradients locally; if a module runs in several"
            " activation checkpoints, pass use_reentrant=False to them"
        )
