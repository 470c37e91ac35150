"""Which programs are correct ones, so that whatever goes wrong in them is a fault of horovod.

A rank may wait for operation k only when it has submitted all of its operations up to k. So no program
blocks itself: of the operations that are waited for in vain, take that with the lowest number; whoever
has not submitted it waits for a lower one. Apart from that, every rank has its own order, within these
bounds:

- A name is in flight once per rank and set, and is used again in the order of the numbers.
- Operations without a name find their partners by kind and order: each kind keeps the order of the numbers.
- Nothing of the world passes a join, nothing at all a restart. Before a rank joins, those of its operations
  that do not work with joined ranks are complete. A rank that leaves out an operation because it has joined
  has no others until all have joined.
- A set is used between its addition and its removal, and is removed when its operations are complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from program import (
    IN_PLACE_KINDS,
    PAUSES,
    WAITS,
    WORLD,
    Action,
    Do,
    Form,
    Kind,
    Operation,
    Program,
)


def works_with_joined(operation: Operation) -> bool:
    """Whether ranks that have joined can take part, with zeros."""
    return operation.kind is Kind.ALLREDUCE and operation.disagrees is None


def has_form(operation: Operation, form: Form) -> bool:
    """Whether the operation can be called so."""
    if form.is_in_place() and (operation.kind not in IN_PLACE_KINDS or operation.wire is not None):
        return False
    return form.blocks() or operation.is_async()


class Needs:
    """What must have happened on a rank before it submits each of its operations."""

    def __init__(self, program: Program, rank: int) -> None:
        self.own = [n for n, op in enumerate(program.operations) if rank in program.members(op)]
        self.submitted: dict[int, set[int]] = {number: set() for number in self.own}
        self.complete: dict[int, set[int]] = {number: set() for number in self.own}
        self._last_of_name: dict[tuple[int, str], int] = {}
        self._last_of_class: dict[tuple[int, str], int] = {}
        self._added: dict[int, int] = {}
        self._of_set: dict[int, list[int]] = {}
        self._fragile: list[int] = []
        self._last_join: int | None = None
        self._last_restart: int | None = None
        for number in self.own:
            self._place(number, program.operations[number])

    def _place(self, number: int, operation: Operation) -> None:
        complete = self.complete[number]
        if self._last_restart is not None:
            complete.add(self._last_restart)
        order_class = operation.order_class()
        if order_class == "job":
            # One sequence, whatever set it is about.
            self._follow((WORLD, order_class), number)
            self._place_job_change(number, operation)
            return
        place = operation.process_set
        if order_class is not None:
            self._follow((place, order_class), number)
        for name in operation.core_names():
            if (place, name) in self._last_of_name:
                complete.add(self._last_of_name[place, name])
            self._last_of_name[place, name] = number
        if place in self._added:
            complete.add(self._added[place])
        if place == WORLD:
            if self._last_join is not None:
                complete.add(self._last_join)
            if not works_with_joined(operation):
                self._fragile.append(number)
        self._of_set.setdefault(place, []).append(number)

    def _follow(self, key: tuple[int, str], number: int) -> None:
        if key in self._last_of_class:
            self.submitted[number].add(self._last_of_class[key])
        self._last_of_class[key] = number

    def _place_job_change(self, number: int, operation: Operation) -> None:
        complete = self.complete[number]
        if self._last_join is not None:
            complete.add(self._last_join)
        if operation.kind is Kind.ADD_SET:
            self._added[operation.process_set] = number
            self._fragile.append(number)
        elif operation.kind is Kind.REMOVE_SET:
            complete.update(self._of_set.get(operation.process_set, []))
            self._fragile.append(number)
        elif operation.kind is Kind.JOIN:
            complete.update(self._fragile)
            self._fragile = []
            self._last_join = number
        else:
            complete.update(n for n in self.own if n < number)
            self._last_restart = number


class RankState:
    """How far a rank has come. Refuses what it may not do yet."""

    def __init__(self, program: Program, rank: int) -> None:
        self.needs = Needs(program, rank)
        self.todo = dict.fromkeys(self.needs.own)
        """Not submitted yet, in the order of the numbers."""
        self.in_flight: set[int] = set()
        self._operations = program.operations
        self._complete: set[int] = set()

    def may_submit(self, number: int, form: Form) -> str | None:
        """Why an operation may not be submitted now; None: it may."""
        operation = self._operations[number]
        if number not in self.todo:
            return "it is not one of this rank, or was submitted before"
        if not has_form(operation, form):
            return "there is no such form"
        if form.blocks() and self.lowest() != number:
            return f"it blocks, and {self.lowest()} is not submitted"
        for needed in self.needs.submitted[number]:
            if needed in self.todo:
                return f"it comes after {needed}, which is not submitted"
        for needed in self.needs.complete[number]:
            if needed not in self._complete:
                return f"it comes after {needed}, which is not complete"
        return None

    def may_wait(self, number: int) -> str | None:
        """Why an operation may not be waited for now; None: it may."""
        if number not in self.in_flight:
            return "it is not in flight"
        lowest = self.lowest()
        if lowest is not None and lowest < number:
            return f"{lowest} is not submitted"
        return None

    def lowest(self) -> int | None:
        """The first operation that is not submitted yet."""
        return next(iter(self.todo), None)

    def submit(self, number: int, form: Form) -> None:
        """Go on."""
        del self.todo[number]
        if form.blocks():
            self._complete.add(number)
        else:
            self.in_flight.add(number)

    def wait(self, number: int) -> None:
        """Go on."""
        self.in_flight.remove(number)
        self._complete.add(number)


def problems(program: Program) -> list[str]:
    """What is wrong with a program; an empty list: it is legal, and comes to its end."""
    found = [*_problems_of_sets(program), *_problems_of_joins(program)]
    for rank in range(program.size):
        found += [f"rank {rank}, {text}" for text in _problems_of_rank(program, rank)]
    if not found and not comes_to_an_end(program):
        found.append("the ranks wait for each other")
    return found


def _problems_of_sets(program: Program) -> Iterator[str]:
    static = {place for place, entry in enumerate(program.sets) if entry.static}
    alive = set(static)
    for number, operation in enumerate(program.operations):
        place = operation.process_set
        if operation.kind is Kind.ADD_SET:
            if any(program.sets[at].ranks == program.sets[place].ranks for at in alive):
                yield f"{number}: a set with the ranks of set {place} is there already"
            alive.add(place)
        elif place not in alive:
            yield f"{number}: there is no set {place} at this time"
        if operation.kind is Kind.REMOVE_SET:
            alive.discard(place)
        if operation.kind is Kind.RESTART:
            alive = set(static)
        if not program.members(operation):
            yield f"{number}: nobody calls it"


def _problems_of_joins(program: Program) -> Iterator[str]:
    joined: set[int] = set()
    for number, operation in enumerate(program.operations):
        if operation.kind is Kind.JOIN:
            joined = set()
        elif joined & set(program.members(operation)):
            yield f"{number}: ranks {joined & set(program.members(operation))} have joined"
        elif operation.absent and not works_with_joined(operation):
            yield f"{number}: {operation.kind.value} does not work with joined ranks"
        joined |= set(operation.absent)
    if joined:
        yield f"ranks {joined} have no join"


def _problems_of_rank(program: Program, rank: int) -> Iterator[str]:
    state = RankState(program, rank)
    for place, action in enumerate(program.actions[rank]):
        problem = _apply(state, action)
        if problem is not None:
            yield f"action {place}, {action.do.value} {action.operation}: {problem}"
            return
    for number in [*state.todo, *sorted(state.in_flight)]:
        yield f"operation {number} is never submitted, or never waited for"


def _apply(state: RankState, action: Action) -> str | None:
    if action.do is Do.SUBMIT:
        problem = state.may_submit(action.operation, action.form)
        if problem is None:
            state.submit(action.operation, action.form)
        return problem
    if action.do in WAITS:
        problem = state.may_wait(action.operation)
        if problem is None:
            state.wait(action.operation)
        return problem
    if action.do in {Do.POLL, Do.WAIT_ASIDE} and action.operation not in state.in_flight:
        return "it is not in flight"
    return None


def comes_to_an_end(program: Program) -> bool:
    """Whether all ranks reach the end: runs the actions on a model where operations take no time."""
    places = [0] * program.size
    submitted: list[set[int]] = [set() for _ in range(program.size)]
    moved = True
    while moved:
        moved = False
        for rank, actions in enumerate(program.actions):
            while places[rank] < len(actions):
                action = actions[places[rank]]
                if action.do is Do.SUBMIT:
                    submitted[rank].add(action.operation)
                if _blocks(action) and not _is_complete(program, action.operation, submitted):
                    break
                places[rank] += 1
                moved = True
    return all(place == len(program.actions[rank]) for rank, place in enumerate(places))


def _blocks(action: Action) -> bool:
    if action.do in PAUSES or action.do in {Do.POLL, Do.WAIT_ASIDE}:
        return False
    return action.do in WAITS or action.form.blocks()


def _is_complete(program: Program, number: int, submitted: list[set[int]]) -> bool:
    operation = program.operations[number]
    joins = _joins_after(program, number)
    return all(number in submitted[rank] for rank in program.members(operation)) and all(
        any(join in submitted[rank] for join in joins) for rank in operation.absent
    )


def _joins_after(program: Program, number: int) -> Iterable[int]:
    later = range(number + 1, len(program.operations))
    return [n for n in later if program.operations[n].kind is Kind.JOIN][:1]
