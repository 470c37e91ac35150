"""Smaller and simpler versions of a program: pure. Not all of them are legal; see legality.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from random import Random
from typing import TypeVar

from program import PAUSES, WORLD, Action, Do, Form, Kind, Operation, Program, RankSet, TensorSpec
from schedules import Habits, schedule

T = TypeVar("T")


def without_operations(program: Program, numbers: Collection[int]) -> Program:
    """The program without some operations, and without what makes no sense without them."""
    gone = {*numbers} | _in_sets_never_added(program, numbers)
    gone |= _of_joins_that_went(program, gone)
    kept = [number for number in range(len(program.operations)) if number not in gone]
    places = {old: new for new, old in enumerate(kept)}
    actions = tuple(
        tuple(
            dataclasses.replace(action, operation=places.get(action.operation, -1))
            for action in of_rank
            if action.do in PAUSES or action.operation in places
        )
        for of_rank in program.actions
    )
    return dataclasses.replace(
        program, operations=tuple(program.operations[number] for number in kept), actions=actions
    )


def _in_sets_never_added(program: Program, gone: Collection[int]) -> set[int]:
    operations = program.operations
    sets = {operations[n].process_set for n in gone if operations[n].kind is Kind.ADD_SET}
    return {number for number, operation in enumerate(operations) if operation.process_set in sets}


def _of_joins_that_went(program: Program, gone: Collection[int]) -> set[int]:
    """Operations that ranks leave out because they join, if they do not any more."""
    lost: set[int] = set()
    of_next_join: set[int] = set()
    for number, operation in enumerate(program.operations):
        if operation.absent:
            of_next_join.add(number)
        if operation.kind is Kind.JOIN:
            if number in gone:
                lost |= of_next_join
            of_next_join = set()
    return lost


def until(program: Program, places: Collection[int]) -> Program:
    """The program without operations that no rank has come to; `places` says how far each came."""
    begun = {
        action.operation
        for actions, place in zip(program.actions, places, strict=True)
        for action in actions[: place + 1]
    }
    return without_operations(program, set(range(len(program.operations))) - begun)


def without_rank(program: Program, rank: int) -> Program:
    """The program without a rank; sets that are no sets then lose their operations."""
    sets = [RankSet(_without(entry.ranks, rank), entry.static) for entry in program.sets]
    # Without members, or with those of another: the world, or an earlier one.
    useless = {
        place
        for place, entry in enumerate(sets)
        if not entry.ranks or entry.ranks in [earlier.ranks for earlier in sets[:place]]
    }
    gone = {
        number
        for number, operation in enumerate(program.operations)
        if operation.process_set in useless
        or operation.disagrees == rank
        or (operation.absent and not _without(program.members(operation), rank))
    }
    smaller = without_operations(program, gone)
    operations = tuple(
        _operation_without(operation, program.sets[operation.process_set].ranks, rank)
        for operation in smaller.operations
    )
    hosts, first = [], 0
    for count in program.hosts:
        hosts.append(count - (first <= rank < first + count))
        first += count
    # A set that nobody uses any more keeps its place, so that the numbers of the others stay.
    sets = [RankSet(entry.ranks, static=False) if p in useless else entry for p, entry in enumerate(sets)]
    return dataclasses.replace(
        smaller,
        hosts=tuple(count for count in hosts if count),
        sets=tuple(sets),
        operations=operations,
        actions=tuple(actions for at, actions in enumerate(smaller.actions) if at != rank),
    )


def without_unused_sets(program: Program) -> Program:
    """The program without sets that no operation uses."""
    used = {operation.process_set for operation in program.operations} | {WORLD}
    kept = [place for place in range(len(program.sets)) if place in used]
    operations = tuple(
        dataclasses.replace(operation, process_set=kept.index(operation.process_set))
        for operation in program.operations
    )
    return dataclasses.replace(
        program, sets=tuple(program.sets[place] for place in kept), operations=operations
    )


def _without(ranks: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return tuple(r - (r > rank) for r in ranks if r != rank)


def _operation_without(operation: Operation, members: tuple[int, ...], rank: int) -> Operation:
    place = members.index(rank) if rank in members else None
    splits, tensors = operation.splits, operation.tensors
    if place is not None:
        if splits is not None:
            splits = tuple(_drop(row, place) for row in _drop(splits, place))
        tensors = tuple(_tensor_without(spec, place, splits) for spec in tensors)
    others = [r for r in members if r != rank]
    root = operation.root if operation.root != rank or not others else others[0]
    disagrees = operation.disagrees
    return dataclasses.replace(
        operation,
        splits=splits,
        tensors=tensors,
        root=root - (root > rank),
        absent=_without(operation.absent, rank),
        disagrees=None if disagrees is None else disagrees - (disagrees > rank),
    )


def _drop(row: tuple[T, ...], place: int) -> tuple[T, ...]:
    return row[:place] + row[place + 1 :]


def _tensor_without(spec: TensorSpec, place: int, splits: tuple[tuple[int, ...], ...] | None) -> TensorSpec:
    if spec.rows is None:
        return spec
    rows = _drop(spec.rows, place) if splits is None else tuple(sum(row) for row in splits)
    return dataclasses.replace(spec, rows=rows)


# ---- simpler operations, one by one


def simplify_reduction(operation: Operation) -> Operation:
    """A plain sum."""
    contents = "bits" if operation.kind not in {Kind.ALLREDUCE, Kind.REDUCESCATTER} else "steps"
    return dataclasses.replace(
        operation, reduce="Sum", prescale=1.0, postscale=1.0, wire=None, contents=contents
    )


def simplify_dtype(operation: Operation) -> Operation:
    """float32, for which everything is defined."""
    if operation.contents in {"small", "bits"} and operation.kind in {Kind.ALLREDUCE, Kind.REDUCESCATTER}:
        operation = dataclasses.replace(operation, contents="steps")
    tensors = tuple(dataclasses.replace(spec, dtype="float32") for spec in operation.tensors)
    return dataclasses.replace(operation, tensors=tensors)


def ungroup(operation: Operation) -> Operation:
    """One tensor."""
    return dataclasses.replace(operation, grouped=False, tensors=operation.tensors[:1])


def shrink_tensors(operation: Operation) -> Operation:
    """At most one element, or one row."""
    if operation.splits is not None:
        splits = tuple(tuple(min(rows, 1) for rows in row) for row in operation.splits)
        tensors = tuple(
            dataclasses.replace(spec, shape=(), rows=tuple(sum(row) for row in splits))
            for spec in operation.tensors
        )
        return dataclasses.replace(operation, splits=splits, tensors=tensors)
    return dataclasses.replace(
        operation, tensors=tuple(_one_row(operation.kind, spec) for spec in operation.tensors)
    )


def halve_tensors(operation: Operation) -> Operation:
    """One column, and half of the rows; operations whose rows depend on each other stay."""
    if operation.kind is Kind.ALLTOALL:
        return operation
    return dataclasses.replace(
        operation,
        tensors=tuple(
            dataclasses.replace(spec, shape=(max(spec.shape[0] // 2, 1),))
            if spec.rows is None and spec.shape and 0 not in spec.shape
            else spec
            for spec in operation.tensors
        ),
    )


def _one_row(kind: Kind, spec: TensorSpec) -> TensorSpec:
    if spec.rows is not None:
        most = len(spec.rows) if kind is Kind.ALLTOALL else 1
        return dataclasses.replace(spec, shape=(), rows=tuple(min(rows, most) for rows in spec.rows))
    return dataclasses.replace(spec, shape=(0,) if 0 in spec.shape else (1,))


def rename(operation: Operation) -> Operation:
    """Without a name."""
    return dataclasses.replace(operation, name=None) if operation.disagrees is None else operation


SIMPLIFICATIONS: tuple[Callable[[Operation], Operation], ...] = (
    ungroup,
    shrink_tensors,
    halve_tensors,
    simplify_reduction,
    simplify_dtype,
    rename,
)


def with_simpler(
    program: Program, simplify: Callable[[Operation], Operation], numbers: Collection[int]
) -> Program:
    """The program with some operations simplified."""
    return dataclasses.replace(
        program,
        operations=tuple(
            simplify(operation) if number in numbers and operation.tensors else operation
            for number, operation in enumerate(program.operations)
        ),
    )


# ---- simpler actions


def without_actions(program: Program, rank: int, places: Collection[int]) -> Program:
    """The program without some actions of a rank that are not needed."""
    kept = tuple(action for place, action in enumerate(program.actions[rank]) if place not in places)
    return _with_actions(program, rank, kept)


def is_optional(action: Action) -> bool:
    """Whether a rank can do without."""
    return action.do in PAUSES or action.do in {Do.POLL, Do.WAIT_ASIDE}


def with_plain_forms(program: Program, rank: int) -> Program:
    """The program with one rank that uses ordinary memory, nothing in place, and waits plainly."""
    return _with_actions(program, rank, tuple(_plain(action) for action in program.actions[rank]))


def _plain(action: Action) -> Action:
    if action.do is Do.POLL_UNTIL_DONE:
        return dataclasses.replace(action, do=Do.WAIT)
    form = Form.BLOCKING if action.form.blocks() else Form.ASYNC
    return dataclasses.replace(action, form=form, shared=False)


def in_plain_order(program: Program, rank: int, waits: float) -> Program:
    """The program with one rank that submits in the order of the numbers; 1: waits at once, 0: at the end."""
    habits = Habits(lookahead=1, waits=waits)
    return _with_actions(program, rank, schedule(program, rank, habits, Random(0)))


def _with_actions(program: Program, rank: int, actions: tuple[Action, ...]) -> Program:
    of_all = list(program.actions)
    of_all[rank] = actions
    return dataclasses.replace(program, actions=tuple(of_all))
