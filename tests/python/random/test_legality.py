from __future__ import annotations

import dataclasses

from legality import comes_to_an_end, problems
from program import Action, Do, Form, Kind, Operation, Program, RankSet, TensorSpec

TENSOR = (TensorSpec("float32", (3,)),)
NAMED = Operation(Kind.ALLREDUCE, name="a", tensors=TENSOR)
OTHER = Operation(Kind.ALLREDUCE, name="b", tensors=TENSOR)
UNNAMED = Operation(Kind.ALLREDUCE, tensors=TENSOR)
GATHER = Operation(Kind.ALLGATHER, name="g", tensors=TENSOR)
JOIN = Operation(Kind.JOIN)


def submit(number: int, form: Form = Form.ASYNC) -> Action:
    return Action(Do.SUBMIT, number, form)


def wait(number: int) -> Action:
    return Action(Do.WAIT, number)


def block(number: int) -> Action:
    return submit(number, Form.BLOCKING)


def program(operations: list[Operation], *actions: list[Action], sets: tuple[RankSet, ...] = ()) -> Program:
    """For as many ranks as there are lists of actions."""
    world = RankSet(tuple(range(len(actions))), static=True)
    return Program(
        seed=0,
        hosts=(len(actions),),
        settings=(),
        sets=(world, *sets),
        operations=tuple(operations),
        actions=tuple(tuple(of_rank) for of_rank in actions),
    )


def test_ranks_may_submit_and_wait_in_orders_of_their_own() -> None:
    legal = program(
        [NAMED, OTHER],
        [submit(1), submit(0), wait(1), wait(0)],
        [submit(0), wait(0), submit(1), wait(1)],
    )

    assert problems(legal) == []


def test_a_wait_needs_all_lower_submissions() -> None:
    actions = [submit(1), wait(1), submit(0), wait(0)]

    assert problems(program([NAMED, OTHER], actions, actions)) == [
        "rank 0, action 1, wait 1: 0 is not submitted",
        "rank 1, action 1, wait 1: 0 is not submitted",
    ]


def test_the_model_sees_ranks_that_wait_for_each_other() -> None:
    crossed = program([NAMED, OTHER], [block(0), block(1)], [block(1), block(0)])

    assert not comes_to_an_end(crossed)


def test_a_name_is_in_flight_once() -> None:
    actions = [submit(0), submit(1), wait(0), wait(1)]

    (first, _) = problems(program([NAMED, NAMED], actions, actions))

    assert first == "rank 0, action 1, submit 1: it comes after 0, which is not complete"


def test_the_same_name_may_be_in_flight_in_two_sets() -> None:
    in_set = dataclasses.replace(NAMED, process_set=1)
    actions = [submit(0), submit(1), wait(0), wait(1)]
    legal = program(
        [NAMED, in_set], actions, actions, [submit(0), wait(0)], sets=(RankSet((0, 1), static=True),)
    )

    assert problems(legal) == []


def test_operations_without_a_name_keep_their_order() -> None:
    actions = [submit(1), submit(0), wait(0), wait(1)]

    (first, _) = problems(program([UNNAMED, UNNAMED], actions, actions))

    assert first == "rank 0, action 0, submit 1: it comes after 0, which is not submitted"


def test_everything_is_waited_for() -> None:
    (first, _) = problems(program([NAMED], [submit(0)], [submit(0)]))

    assert first == "rank 0, operation 0 is never submitted, or never waited for"


def test_allreduces_may_be_in_flight_across_a_join() -> None:
    left_out = dataclasses.replace(OTHER, absent=(1,))
    legal = program(
        [NAMED, left_out, JOIN],
        [submit(0), submit(1), wait(1), block(2), wait(0)],
        [submit(0), block(2), wait(0)],
    )

    assert problems(legal) == []


def test_other_operations_are_complete_before_a_join() -> None:
    actions = [submit(0), block(1), wait(0)]

    (first, _) = problems(program([GATHER, JOIN], actions, actions))

    assert first == "rank 0, action 1, submit 1: it comes after 0, which is not complete"


def test_a_rank_that_has_joined_takes_part_in_nothing_else() -> None:
    left_out = dataclasses.replace(NAMED, absent=(1,))
    illegal = program(
        [left_out, OTHER, JOIN],
        [block(0), block(1), block(2)],
        [block(1), block(2)],
    )

    assert problems(illegal) == ["1: ranks {1} have joined"]


def test_a_set_is_removed_when_its_operations_are_complete() -> None:
    in_set = dataclasses.replace(NAMED, process_set=1)
    operations = [Operation(Kind.ADD_SET, 1), in_set, Operation(Kind.REMOVE_SET, 1)]
    other = [block(0), block(2)]
    sets = (RankSet((0,), static=False),)

    early = program(operations, [block(0), submit(1), block(2), wait(1)], other, sets=sets)
    legal = program(operations, [block(0), submit(1), wait(1), block(2)], other, sets=sets)

    assert problems(early) == ["rank 0, action 2, submit 2: it comes after 1, which is not complete"]
    assert problems(legal) == []


def test_a_set_is_not_used_before_it_is_there() -> None:
    in_set = dataclasses.replace(NAMED, process_set=1)
    sets = (RankSet((0,), static=False),)

    illegal = program([in_set, Operation(Kind.ADD_SET, 1)], [block(0), block(1)], [block(1)], sets=sets)

    assert problems(illegal) == ["0: there is no set 1 at this time"]


def test_nothing_passes_a_restart() -> None:
    actions = [submit(1), block(0), wait(1)]

    (first, _) = problems(program([Operation(Kind.RESTART), NAMED], actions, actions))

    assert first == "rank 0, action 0, submit 1: it comes after 0, which is not complete"
