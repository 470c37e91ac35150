from __future__ import annotations

import itertools
from collections.abc import Callable

import cuts
import pytest
from generator import generate
from legality import problems
from listing import listing
from profiles import Limits
from program import Do, Kind, Program
from shrinking import shrink

Fails = Callable[[Program], bool]


def never() -> bool:
    return False


def everywhere(program: Program) -> list[int]:
    """The ends of all ranks."""
    return [len(actions) for actions in program.actions]


def program_with(fails: Fails, least: int = 25) -> Program:
    """The first program that fails and is not small."""
    candidates = (generate(seed) for seed in itertools.count())
    return next(p for p in candidates if fails(p) and least <= len(p.operations) < 150 and p.size > 2)


def has_kind(kind: Kind) -> Fails:
    return lambda program: any(operation.kind is kind for operation in program.operations)


def has_stop(program: Program) -> bool:
    return any(action.do is Do.STOP for actions in program.actions for action in actions)


def overtakes(program: Program) -> bool:
    """Whether rank 0 submits in another order than rank 1."""
    orders = [[a.operation for a in of_rank if a.do is Do.SUBMIT] for of_rank in program.actions[:2]]
    common = set(orders[0]) & set(orders[1])
    return [n for n in orders[0] if n in common] != [n for n in orders[1] if n in common]


@pytest.mark.parametrize("kind", [Kind.REDUCESCATTER, Kind.ALLTOALL, Kind.BARRIER, Kind.BROADCAST_OBJECT])
def test_one_operation_on_two_ranks_is_left_of_a_failure_of_its_kind(kind: Kind) -> None:
    smallest = shrink(program := program_with(has_kind(kind)), everywhere(program), has_kind(kind), never)

    assert [operation.kind for operation in smallest.operations] == [kind]
    assert smallest.size == 2
    assert smallest.settings == ()
    assert len(smallest.sets) == len({0, *(operation.process_set for operation in smallest.operations)})
    assert all(len(actions) <= 2 for actions in smallest.actions)


def test_a_join_keeps_what_it_is_about() -> None:
    def fails(program: Program) -> bool:
        return any(operation.absent for operation in program.operations)

    smallest = shrink(program := program_with(fails), everywhere(program), fails, never)

    assert [operation.kind for operation in smallest.operations] == [Kind.ALLREDUCE, Kind.JOIN]


def test_a_set_that_was_added_keeps_what_it_is_about() -> None:
    def fails(program: Program) -> bool:
        return any(o.process_set > 0 and not program.sets[o.process_set].static for o in program.operations)

    smallest = shrink(program := program_with(fails), everywhere(program), fails, never)

    assert [operation.kind for operation in smallest.operations] == [Kind.ADD_SET]


def test_a_stop_that_is_needed_stays_alone() -> None:
    smallest = shrink(program := program_with(has_stop), everywhere(program), has_stop, never)

    assert [a.do for actions in smallest.actions for a in actions] == [Do.STOP]


def test_an_order_that_is_needed_stays() -> None:
    smallest = shrink(program := program_with(overtakes), everywhere(program), overtakes, never)

    assert len(smallest.operations) == 2
    assert smallest.size == 2


def test_every_program_that_is_tried_is_legal_and_smaller_ones_are_kept() -> None:
    tried: list[Program] = []

    def fails(program: Program) -> bool:
        tried.append(program)
        return len(tried) % 3 == 0

    program = generate(21, Limits(two_hosts=True))

    smallest = shrink(program, everywhere(program), fails, lambda: len(tried) > 200)

    assert [problems(candidate) for candidate in tried if problems(candidate)] == []
    assert len(smallest.operations) < len(program.operations)


def test_nothing_is_tried_when_the_time_is_over() -> None:
    program = generate(3)

    assert shrink(program, everywhere(program), lambda _: True, lambda: True) == program


def test_what_no_rank_came_to_goes_first() -> None:
    program = generate(9)

    early = cuts.until(program, [3] * program.size)

    assert len(early.operations) <= 4 * program.size
    assert problems(early) == []


@pytest.mark.parametrize("seed", range(12))
def test_a_rank_can_be_taken_away(seed: int) -> None:
    program = generate(seed, Limits(sizes=(3, 4)))

    smaller = cuts.without_rank(program, seed % program.size)

    assert smaller.size == program.size - 1
    assert problems(smaller) == []


def test_a_program_can_be_read() -> None:
    program = program_with(has_kind(Kind.REDUCESCATTER))
    smallest = shrink(program, everywhere(program), has_kind(Kind.REDUCESCATTER), never)

    text = listing(smallest).splitlines()

    assert text[0] == f"program of seed {program.seed}: 2 ranks"
    assert text[1] == "  no settings"
    assert text[2].startswith("  0: reducescatter float32[1")
    assert text[3:] == ["  rank 0:", "    submit 0; wait 0", "  rank 1:", "    submit 0; wait 0"]
