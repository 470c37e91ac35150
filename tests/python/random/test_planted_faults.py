"""Faults in the test's own layer are noticed, and little is left of the program that showed them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from faults import Fault, actions_with
from generator import generate
from hunt import Finding, investigate
from profiles import Limits
from program import OF_ALL_RANKS, Kind, Program
from ranks import Patience, run_program

IMPATIENT = Patience(stall_seconds=1, stall_limit_seconds=1, limit_seconds=30)
LONG_ENOUGH = 150
"""Seconds; the search ends by itself long before."""


def program_for(fault: Fault) -> Program:
    """The first program of middle length that the fault changes, and nothing else can go wrong in."""
    programs = (generate(seed, Limits(sizes=(3,), stops=False)) for seed in itertools.count())
    return next(p for p in programs if 10 <= len(p.operations) <= 30 and is_plain(p) and shows(fault, p))


def is_plain(program: Program) -> bool:
    """Whether there are no joins and no changes of sets, which end in errors of their own."""
    return not any(operation.kind in OF_ALL_RANKS for operation in program.operations)


def shows(fault: Fault, program: Program) -> bool:
    mine = [o for o in program.operations if o.kind is fault.kind and fault.rank in program.members(o)]
    if fault.what != "swap":
        return len(mine) > 2
    before = program.actions[fault.rank]
    after = actions_with(fault, program, fault.rank)
    swapped = [program.operations[a.operation] for a, b in zip(before, after, strict=True) if a != b]
    # Equal but for the contents: the ranks agree, and the results are wrong.
    return bool(swapped) and replace(swapped[0], seed=0) == replace(swapped[1], seed=0)


def find(fault: Fault, folder: Path, patience: Patience, seconds: float) -> Finding:
    program = program_for(fault)
    outcome = run_program(program, folder / "runs", patience, fault)
    assert outcome.failed()
    return investigate(program, outcome, folder, seconds, fault, patience)


@pytest.mark.parametrize("kind", [Kind.ALLREDUCE, Kind.ALLTOALL, Kind.REDUCESCATTER])
def test_a_wrong_result_leaves_one_operation(kind: Kind, tmp_path: Path) -> None:
    finding = find(Fault("corrupt", kind), tmp_path, Patience(), LONG_ENOUGH)

    assert finding.smallest_outcome.category() == f"WrongResultError: {kind.value}"
    assert [operation.kind for operation in finding.smallest.operations] == [kind]
    assert finding.smallest.size == 2
    assert "again: " in finding.report
    assert f"0: {kind.value}" in finding.report


def test_an_exchanged_order_leaves_two_operations(tmp_path: Path) -> None:
    finding = find(Fault("swap", Kind.ALLREDUCE), tmp_path, Patience(), LONG_ENOUGH)

    assert [operation.kind for operation in finding.smallest.operations] == [Kind.ALLREDUCE] * 2
    assert finding.smallest_outcome.category() == "WrongResultError: allreduce"
    assert finding.smallest.size == 2


def test_a_lost_submission_is_a_stall_that_names_the_late_rank(tmp_path: Path) -> None:
    finding = find(Fault("drop", Kind.ALLGATHER), tmp_path, IMPATIENT, seconds=20)

    assert "the stall limit" in str(finding.smallest_outcome.category())
    assert "1!: [allgather" in finding.report
    assert len(finding.smallest.operations) < len(finding.program.operations) // 2


def test_ranks_that_hang_show_their_stacks(tmp_path: Path) -> None:
    fault = Fault("drop", Kind.BARRIER)
    program = program_for(fault)
    patience = Patience(stall_seconds=60, stall_limit_seconds=0, limit_seconds=4)

    outcome = run_program(program, tmp_path / "runs", patience, fault)

    assert outcome.category() == "did not come to its end"
    assert any("performer.py" in end.output for end in outcome.ends)
