from __future__ import annotations

import pytest
from generator import generate
from legality import problems
from profiles import Limits
from program import Do, Form, Kind, Program, from_json, to_json
from tensor_specs import DTYPES

SEEDS = range(200)


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    return [generate(seed, Limits(two_hosts=seed % 4 == 0)) for seed in SEEDS]


def test_a_seed_is_a_program(programs: list[Program]) -> None:
    assert generate(7) == generate(7)
    assert generate(7) != generate(8)


def test_every_program_is_legal_and_comes_to_its_end(programs: list[Program]) -> None:
    assert {program.seed: problems(program) for program in programs if problems(program)} == {}


def test_a_program_survives_as_text(programs: list[Program]) -> None:
    assert all(from_json(to_json(program)) == program for program in programs[:20])


def test_limits_are_kept() -> None:
    limits = Limits(sizes=(3,), stops=False)

    made = [generate(seed, limits) for seed in range(20)]

    assert {program.hosts for program in made} == {(3,)}
    assert all(a.do is not Do.STOP for program in made for actions in program.actions for a in actions)


def test_together_they_use_everything(programs: list[Program]) -> None:
    operations = [operation for program in programs for operation in program.operations]
    actions = [a for program in programs for of_rank in program.actions for a in of_rank]
    reductions = {o.reduce for o in operations if o.kind is Kind.ALLREDUCE}

    assert {o.kind for o in operations} == set(Kind)
    assert {spec.dtype for o in operations for spec in o.tensors} == set(DTYPES)
    assert reductions == {"Sum", "Average", "Min", "Max", "Product", "Adasum"}
    assert {o.kind for o in operations if o.grouped} == {Kind.ALLREDUCE, Kind.ALLGATHER, Kind.REDUCESCATTER}
    assert any(o.absent for o in operations)
    assert any(o.disagrees is not None for o in operations)
    assert any(o.wire for o in operations)
    assert any(o.name is None for o in operations)
    assert any(o.process_set > 0 for o in operations)
    assert {a.do for a in actions} == set(Do)
    assert {a.form for a in actions} == set(Form)
    assert any(a.shared for a in actions)
    assert {program.size for program in programs} == {2, 3, 4}
    assert any(len(program.operations) > 511 for program in programs)


def test_ranks_have_their_own_order(programs: list[Program]) -> None:
    orders = [
        [[a.operation for a in of_rank if a.do is Do.SUBMIT] for of_rank in program.actions]
        for program in programs
    ]

    assert sum(order[0] != order[1] for order in orders) > len(orders) // 2
