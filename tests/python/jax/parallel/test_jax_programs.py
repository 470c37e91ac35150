"""Collectives in control flow, under vmap and checkpoint, many in one program, from several programs."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import assert_same
from jax._src.interpreters import mlir

import horovod.jax as hvd
from horovod._core import codes
from horovod.jax._primitive import collective_p
from horovod.jax._spec import Collective


def total(x):
    return hvd.allreduce(x, op=hvd.Sum)


def test_loops(size):
    def turn(_, x):
        return total(x) / size + 1

    fixed = jax.jit(lambda x: jax.lax.fori_loop(0, 10, turn, x))(jnp.zeros(3))
    until = jax.jit(lambda x: jax.lax.while_loop(lambda v: v[0] < 7, lambda v: turn(0, v), x))(jnp.zeros(3))
    scanned, each = jax.jit(lambda x: jax.lax.scan(lambda c, _: (turn(0, c), total(c)), x, None, 5))(
        jnp.zeros(3)
    )

    assert_same(fixed, np.full(3, 10.0))
    assert_same(until, np.full(3, 7.0))
    assert_same(scanned, np.full(3, 5.0))
    assert_same(each, np.arange(5)[:, None] * np.full(3, size))


def test_cond(size):
    def either(flag, x):
        return jax.lax.cond(flag, total, lambda v: total(2 * v), x)

    program = jax.jit(either)
    assert_same(program(True, jnp.ones(2)), np.full(2, size))
    assert_same(program(False, jnp.ones(2)), np.full(2, 2 * size))


def test_vmap(rank, size):
    x = jnp.arange(12.0).reshape(3, 4) + rank

    assert_same(jax.vmap(total)(x), total(x))
    assert_same(jax.vmap(total, in_axes=1, out_axes=1)(x), total(x))
    assert_same(jax.vmap(hvd.allgather)(x), np.concatenate([x - rank + r for r in range(size)], axis=1))
    rows = jnp.tile(x[:, :1], (1, 2 * size))
    scattered = jax.vmap(lambda v: hvd.reducescatter(v, op=hvd.Sum))(rows)
    assert_same(scattered, np.asarray(total(rows))[:, :2])
    assert_same(jax.vmap(lambda v: hvd.broadcast(v, size - 1))(x), np.asarray(x) - rank + size - 1)
    tree = jax.vmap(lambda a, b: hvd.allreduce((a, b), op=hvd.Sum), in_axes=(0, None))(x, jnp.ones(2))
    assert_same(tree[0], total(x))
    assert_same(tree[1][0], np.full(2, size))
    with pytest.raises(NotImplementedError, match="Adasum"):
        jax.vmap(lambda v: hvd.allreduce(v, op=hvd.Adasum))(x)


def test_vmap_of_what_moves_rows(rank, size):
    """The rows of every example are those that ranks share, whichever dimension is mapped."""
    everything = np.arange(size * 3 * 2 * size * 2.0).reshape(
        size, 3, 2 * size, 2
    )  # rank, example, row, column
    mine = jnp.asarray(everything[rank])
    expected = {
        hvd.allgather: np.concatenate(everything, axis=1),
        hvd.alltoall: np.concatenate([other[:, 2 * rank : 2 * rank + 2] for other in everything], axis=1),
        hvd.reducescatter: everything.mean(axis=0)[:, 2 * rank : 2 * rank + 2],
    }

    def mapped(first, last):
        both = jax.vmap(jax.vmap(hvd.alltoall, in_axes=1, out_axes=1))(first)
        return [jax.vmap(f)(first) for f in expected], [jax.vmap(f, in_axes=-1)(last) for f in expected], both

    for way in (mapped, jax.jit(mapped)):
        first, last, both = way(mine, jnp.moveaxis(mine, 0, -1))
        for wanted, one, other in zip(expected.values(), first, last, strict=True):
            assert_same(one, wanted)
            assert_same(other, wanted)
        assert_same(both, expected[hvd.alltoall])


def test_checkpoint(rank, size):
    def loss(x):
        return jnp.sum(jnp.sin(total(jnp.cos(x))))

    x = jnp.arange(4.0) + rank
    plain = jax.jit(jax.grad(loss))(x)
    again = jax.jit(jax.grad(jax.checkpoint(loss)))(x)
    in_a_loop = jax.jit(
        jax.grad(lambda v: jax.lax.scan(lambda c, _: (jax.checkpoint(loss)(v) + c, None), 0.0, None, 3)[0])
    )(x)

    assert_same(again, plain)
    assert_same(in_a_loop, 3 * np.asarray(plain))


@pytest.mark.parametrize("elements", [1, 20_000])
def test_many_independent_ones_in_one_program(elements, size):
    def program(x):
        return [total(x * (i + 1)) for i in range(30)]

    results = jax.jit(program)(jnp.ones(elements, jnp.float32))

    for i, result in enumerate(results):
        assert_same(result, np.full(elements, size * (i + 1)))


def test_the_rest_of_a_program_may_wait_for_the_core(size):
    """Futures are completed on threads that may block: on one of the core this would never end."""

    def on_host(x):
        hvd.allgather_object(0)
        return x

    def program(x):
        for i in range(4):
            x = total(x * (i + 1)) / size
            x = jax.pure_callback(on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return x

    assert_same(jax.jit(program)(jnp.ones(3)), np.full(3, 24.0))


def test_programs_without_waiting_in_between(size):
    program = jax.jit(total)
    x = jnp.ones(1000)
    for _ in range(20):
        x = program(x) / size
    several = [program(jnp.full(3, i)) for i in range(20)]

    assert_same(x, np.ones(1000))
    for i, result in enumerate(several):
        assert_same(result, np.full(3, i * size))


def test_a_jitted_helper_that_is_used_twice(size):
    helper = jax.jit(total)
    first, second = jax.jit(lambda x: (helper(x), helper(helper(x) + 1)))(jnp.ones(3))

    assert_same(first, np.full(3, size))
    assert_same(second, np.full(3, (size + 1) * size))


def _branch(x):
    return jax.lax.cond(x[0] >= 0, total, lambda v: v, x)


def _loop(x):
    return jax.lax.scan(_turn, x, None, 2)[0]


def _turn(x, _):
    return total(x), None


def _unrolled(x):
    return jax.lax.scan(lambda carry, row: (carry, total(row)), 0, jnp.stack([x, x + 1]), unroll=2)[1]


def _solved(b):
    return jax.scipy.sparse.linalg.cg(lambda x: 2 * total(x), b, maxiter=2)[0]


_jitted = jax.jit(total)
SHARED = {
    "jit": _jitted,
    "checkpoint": jax.checkpoint(total),
    "cond": _branch,
    "scan": _loop,
    "unrolled scan": _unrolled,
    "conjugate gradients": _solved,
    "vmap": jax.jit(jax.vmap(total)),
    "jit in jit": jax.jit(lambda x: _jitted(x) + _jitted(x + 1)),
    "gradient": jax.jit(jax.grad(lambda x: (_jitted(x) ** 2).sum())),
    "gradient of checkpoint": jax.grad(lambda x: (jax.checkpoint(total)(x) ** 2).sum()),
}


@pytest.mark.parametrize("shared", SHARED.values(), ids=SHARED.keys())
def test_every_call_of_a_function_has_names_of_its_own(shared):
    twice = jax.jit(lambda a, b: (shared(a), shared(b)))

    text = twice.lower(jnp.ones(3), jnp.ones(3)).compile().as_text()

    names = re.findall(r'name = "([^"]+)"', text)
    assert len(names) >= 2
    assert len(set(names)) == len(names), names


def test_calls_that_ranks_reach_in_another_order(rank, size):
    helper = jax.jit(total)

    def after_work(turns, value):
        work = jax.lax.fori_loop(0, turns, lambda _, x: jnp.tanh(x @ x), jnp.full((64, 64), value))
        return value * jnp.ones(3) + 0 * work[0, 0]

    both = jax.jit(lambda turns, a, b: (helper(after_work(turns[0], a)), helper(after_work(turns[1], b))))

    # The same program on all ranks; on even ones the first call is ready late, on odd ones the second.
    turns = (300, 1) if rank % 2 == 0 else (1, 300)
    for turn in range(1, 11):
        first, second = both(turns, 1.0 * turn, -1.0 * turn)
        assert_same(first, np.full(3, 1.0 * turn * size))
        assert_same(second, np.full(3, -1.0 * turn * size))


def _names_in(program, *arrays):
    return re.findall(r'name = "([^"]+)"', program.lower(*arrays).as_text())


def _names(process_set):
    return _names_in(jax.jit(lambda x: hvd.allreduce(x, process_set=process_set)), jnp.ones((2, 7)))


@jax.jit
def _step(weights, batch):
    gradient = jax.grad(lambda w: jnp.mean(batch @ w))(weights)
    return weights - hvd.allreduce(gradient)


@pytest.mark.parametrize("few", [7, 3])
def test_a_rank_that_compiles_again_alone_has_the_same_names(few, rank, size):
    """The last batch is smaller on one rank, whose gradients have the same shape as ever."""
    weights, whole = jnp.zeros(2), jnp.ones((8, 2))
    last = whole[:few] if rank == 0 else whole
    found = hvd.allgather_object(
        [_names_in(_step, weights, batch) for batch in (whole, last, whole[: few - 1])]
    )
    # Each rank has one name, at any time and whatever it has compiled before.
    assert len({name for programs in found for names in programs for name in names}) == 1, found

    for batch in (whole, whole, last, whole):
        weights = _step(weights, batch)

    assert_same(weights, np.full(2, -4.0))


def test_a_rank_that_only_looks_at_a_program_has_the_same_names(rank):
    weights = jnp.zeros(5)
    if rank == 0:
        for rows in (3, 4):
            _names_in(_step, weights, jnp.ones((rows, 5)))
            jax.eval_shape(_step, weights, jnp.ones((rows + 2, 5)))

    found = hvd.allgather_object(_names_in(_step, weights, jnp.ones((2, 5))))

    assert all(names == found[0] for names in found), found
    assert_same(_step(weights, jnp.ones((2, 5))), np.full(5, -1.0))


def _program_of_one_name(factor):
    return jax.jit(lambda x: (total(factor * x), total(factor * x + 1)))


def test_different_programs_of_one_name_follow_each_other(rank, size):
    one, other = _program_of_one_name(1), _program_of_one_name(10)
    assert _names_in(one, jnp.ones(3)) == _names_in(other, jnp.ones(3))
    results = []
    for turn in range(20):  # nobody waits in between
        x = jnp.full(3, 1.0 * (turn + rank))
        if rank == turn % size:
            x = jnp.tanh(jnp.ones((200, 200)) @ jnp.ones((200, 200)))[:3, 0] * 0 + x  # late
        results.append((one(x), other(x)))

    ranks = size * (size - 1) // 2
    for turn, pairs in enumerate(results):
        for factor, (first, second) in zip((1, 10), pairs, strict=True):
            assert_same(first, np.full(3, factor * (turn * size + ranks)))
            assert_same(second, np.full(3, factor * (turn * size + ranks) + size))


def test_barriers_of_a_program_have_names_of_their_own():
    def turn(x, _):
        hvd.barrier()
        return x + 1, None

    @jax.jit
    def program(x):
        hvd.barrier()
        hvd.barrier()
        return jax.lax.scan(turn, x, None, 3)[0]

    names = _names_in(program, jnp.zeros(2))

    assert len(names) == len(set(names)) == 3, names
    assert_same(program(jnp.zeros(2)), np.full(2, 3.0))


def test_operations_that_nobody_could_tell_apart_are_refused():
    spec = Collective(codes.ALLREDUCE, "allreduce", 0, 1, 0, name="not numbered", is_named_by_us=True)
    lower = mlir.lower_jaxpr_to_module
    program = jax.jit(lambda x: collective_p.bind(x, spec=spec))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlir, "lower_jaxpr_to_module", lower.__wrapped__)
        with pytest.raises(NotImplementedError, match="give this one a name"):
            program.lower(jnp.ones(2))


def test_what_members_of_a_set_trace_does_not_change_other_names(rank, size):
    for first in range(size - 1):  # one after the other, under one id
        process_set = hvd.add_process_set(list(range(first, size))[:2] if size > 2 else [first])
        inside = _names(process_set) if rank in process_set.ranks else []
        everywhere = _names(hvd.global_process_set)

        found = hvd.allgather_object((inside, everywhere))

        assert len({tuple(names) for names, _ in found if names}) == 1, found
        assert len({tuple(names) for _, names in found}) == 1, found
        assert inside != everywhere
        hvd.remove_process_set(process_set)


def test_names_that_the_program_gives_stay(size):
    program = jax.jit(lambda a, b: (hvd.allreduce(a, name="mine"), hvd.allreduce(b, name="mine")))

    text = program.lower(jnp.ones(3), jnp.ones(3)).compile().as_text()

    assert re.findall(r'name = "([^"]+)"', text) == ["allreduce.mine"] * 2
    assert_same(program(jnp.full(3, size), jnp.full(3, size))[1], np.full(3, size))


def test_arrays_of_numpy_and_numbers(rank, size):
    assert_same(total(np.full(2, rank, np.float32)), np.full(2, size * (size - 1) / 2))
    assert_same(total(1.5), 1.5 * size)
    assert_same(jax.jit(lambda: total(np.ones(2)))(), np.full(2, size))


def test_a_name_is_used_again_in_every_turn(size):
    def turn(x, _):
        return hvd.allreduce(x, name="the same") + 1, None

    for _ in range(2):
        assert_same(jax.jit(lambda x: jax.lax.scan(turn, x, None, 20)[0])(jnp.zeros(2)), np.full(2, 20.0))
