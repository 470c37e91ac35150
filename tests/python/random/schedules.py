"""The order in which one rank works through its operations: pure, drawn from a seed.

Ranks differ in their habits, as the processes of a training job do: one submits in order and waits for
everything at once, another submits far ahead, in any order, and is late with some.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from legality import RankState
from program import IN_PLACE_KINDS, Action, Do, Form, Kind, Program

_TRIES = 6


@dataclass(frozen=True)
class Habits:
    """How a rank goes about its work; shares are between 0 and 1."""

    lookahead: int
    """Operations that it chooses the next one from."""
    waits: float
    blocks: float = 0
    polls: float = 0
    aside: float = 0
    """Submissions that another thread waits for."""
    in_place: float = 0
    shared: float = 0
    late: float = 0
    """Operations that it puts off."""
    late_by: int = 0
    """For so many actions, if possible."""
    pauses: float = 0
    """Actions that a pause comes before."""
    pause_ms: float = 0
    stops: float = 0
    """Pauses that are stops by a signal."""


@dataclass(frozen=True)
class Manner:
    """What all ranks of a program have in common."""

    reorders: bool
    pauses: bool
    stops: bool
    floods: bool
    """Very many operations are in flight at a time."""
    shares: bool
    """Everything that can be lies in shared memory."""


def draw_habits(random: Random, manner: Manner) -> Habits:
    """Habits of one rank."""
    lookahead = random.choice((1, 2, 4, 8, 16, 64)) if manner.reorders else 1
    return Habits(
        lookahead=random.choice((64, 1000)) if manner.floods else lookahead,
        waits=random.choice((0.02, 0.1)) if manner.floods else random.choice((0.1, 0.5, 0.9)),
        blocks=random.choice((0.0, 0.05, 0.5)),
        polls=random.choice((0.0, 0.0, 0.1)),
        aside=random.choice((0.0, 0.0, 0.1)),
        in_place=1.0 if manner.shares else random.choice((0.0, 0.5, 1.0)),
        shared=1.0 if manner.shares else random.choice((0.0, 0.0, 0.5, 1.0)),
        late=random.choice((0.0, 0.05, 0.2)) if manner.reorders else 0.0,
        late_by=random.choice((3, 20, 300)),
        pauses=random.choice((0.0, 0.02, 0.1)) if manner.pauses else 0.0,
        pause_ms=random.choice((0.05, 0.5, 3.0)),
        stops=random.choice((0.0, 0.1, 0.5)) if manner.stops else 0.0,
    )


def schedule(program: Program, rank: int, habits: Habits, random: Random) -> tuple[Action, ...]:
    """All actions of a rank: every operation is submitted and waited for."""
    return tuple(_Scheduler(program, rank, habits, random).run())


class _Scheduler:
    def __init__(self, program: Program, rank: int, habits: Habits, random: Random) -> None:
        self._operations = program.operations
        self._state = RankState(program, rank)
        self._habits = habits
        self._random = random
        self._held = {n: habits.late_by for n in self._state.todo if random.random() < habits.late}

    def run(self) -> Iterator[Action]:
        state, habits, random = self._state, self._habits, self._random
        while state.todo or state.in_flight:
            if random.random() < habits.pauses:
                yield self._pause()
            if state.in_flight and random.random() < habits.polls:
                yield Action(Do.POLL, random.choice(sorted(state.in_flight)))
            number = self._to_wait_for() if random.random() < habits.waits else None
            if number is None:
                number = self._to_submit()
                if number is not None:
                    yield self._submit(number)
                    if number in state.in_flight and random.random() < habits.aside:
                        yield Action(Do.WAIT_ASIDE, number)
                    continue
                number = self._to_wait_for()
            yield self._submit_held() if number is None else self._wait(number)

    def _to_submit(self) -> int | None:
        choice = [n for n in islice(self._state.todo, self._habits.lookahead) if not self._is_held(n)]
        for number in self._random.sample(choice, min(_TRIES, len(choice))):
            if self._may_submit(number):
                return number
        return choice[0] if choice and self._may_submit(choice[0]) else None

    def _is_held(self, number: int) -> bool:
        left = self._held.get(number, 0)
        if left > 0:
            self._held[number] = left - 1
        return left > 0

    def _submit_held(self) -> Action:
        # Nothing else is possible, and the lowest always is: what it needs has a lower number.
        lowest = self._state.lowest()
        assert lowest is not None
        return self._submit(lowest)

    def _may_submit(self, number: int) -> bool:
        is_async = self._operations[number].is_async()
        return self._state.may_submit(number, Form.ASYNC if is_async else Form.BLOCKING) is None

    def _to_wait_for(self) -> int | None:
        lowest = self._state.lowest()
        choice = [n for n in self._state.in_flight if lowest is None or n < lowest]
        return self._random.choice(sorted(choice)) if choice else None

    def _submit(self, number: int) -> Action:
        operation = self._operations[number]
        may_block = self._state.may_submit(number, Form.BLOCKING) is None
        blocks = not operation.is_async() or (may_block and self._random.random() < self._habits.blocks)
        in_place = operation.kind in IN_PLACE_KINDS and self._random.random() < self._habits.in_place
        if operation.wire is not None:
            in_place = False  # forms in place take no compression
        form = _FORMS[blocks, in_place]
        shared = operation.kind is Kind.ALLREDUCE and in_place and self._random.random() < self._habits.shared
        self._state.submit(number, form)
        return Action(Do.SUBMIT, number, form, shared)

    def _wait(self, number: int) -> Action:
        self._state.wait(number)
        polls = self._random.random() < self._habits.polls
        return Action(Do.POLL_UNTIL_DONE if polls else Do.WAIT, number)

    def _pause(self) -> Action:
        # Many short ones, a few long ones.
        duration = min(self._random.expovariate(1.0) * self._habits.pause_ms, 20.0)
        if self._random.random() < self._habits.stops:
            after = self._random.choice((0.0, 0.2, 1.0, 3.0))
            return Action(Do.STOP, after_ms=after, for_ms=round(5 + 5 * duration, 3))
        return Action(self._random.choice((Do.SLEEP, Do.SPIN)), for_ms=round(duration, 3))


_FORMS = {
    (False, False): Form.ASYNC,
    (False, True): Form.ASYNC_IN_PLACE,
    (True, False): Form.BLOCKING,
    (True, True): Form.BLOCKING_IN_PLACE,
}
