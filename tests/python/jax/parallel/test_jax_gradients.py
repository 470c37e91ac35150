"""Derivatives of collectives: of the sum of the losses of all ranks, forward and backward, and twice.

Every rank computes what a single process would get for all ranks together, with the arrays stacked.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import assert_same

import horovod.jax as hvd


def _all(size, rows=4):
    return jnp.stack([jnp.sin(jnp.arange(rows * 2.0).reshape(rows, 2) + r) + 2 for r in range(size)])


def _weights(size, shape):
    return jnp.stack([jnp.cos(jnp.arange(np.prod(shape)).reshape(shape) * (r + 1.0)) for r in range(size)])


def _expected(together, everything):
    """Return, for each rank, the gradient of the sum of losses of a single process."""
    return jax.grad(together)(everything)


OPERATIONS = {
    "sum": (lambda x: hvd.allreduce(x, op=hvd.Sum), lambda a: jnp.stack([a.sum(0)] * len(a))),
    "average": (hvd.allreduce, lambda a: jnp.stack([a.mean(0)] * len(a))),
    "scaled": (
        lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.5, postscale_factor=3.0),
        lambda a: jnp.stack([1.5 * a.sum(0)] * len(a)),
    ),
    "max": (lambda x: hvd.allreduce(x, op=hvd.Max), lambda a: jnp.stack([a.max(0)] * len(a))),
    "min": (lambda x: hvd.allreduce(x, op=hvd.Min), lambda a: jnp.stack([a.min(0)] * len(a))),
    "product": (lambda x: hvd.allreduce(x, op=hvd.Product), lambda a: jnp.stack([a.prod(0)] * len(a))),
    "broadcast": (lambda x: hvd.broadcast(x, 0), lambda a: jnp.stack([a[0]] * len(a))),
    "allgather": (hvd.allgather, lambda a: jnp.stack([jnp.concatenate(list(a))] * len(a))),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_gradients(name, is_compiled, rank, size):
    operation, model = OPERATIONS[name]
    everything = _all(size)
    weights = _weights(size, model(everything)[0].shape)

    def loss(x):
        return jnp.sum(weights[rank] * operation(x) ** 2)

    gradient = jax.grad(loss)
    result = (jax.jit(gradient) if is_compiled else gradient)(everything[rank])

    expected = _expected(lambda a: jnp.sum(weights * model(a) ** 2), everything)
    np.testing.assert_allclose(result, expected[rank], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average])
@pytest.mark.parametrize("extra", [0, 1])
def test_gradient_of_reducescatter(op, extra, rank, size):
    rows = 2 * size + extra
    everything = _all(size, rows)
    pieces = np.array_split(np.arange(rows), size)
    factor = size if op == hvd.Average else 1

    def loss(x):
        return jnp.sum(hvd.reducescatter(x, op=op) ** 2 * (rank + 1))

    def together(a):
        whole = a.sum(0) / factor
        return sum(jnp.sum(whole[piece] ** 2) * (r + 1) for r, piece in enumerate(pieces))

    result = jax.jit(jax.grad(loss))(everything[rank])
    np.testing.assert_allclose(result, _expected(together, everything)[rank], rtol=1e-6)


def test_gradient_of_alltoall(rank, size):
    everything = _all(size, size)
    result = jax.jit(jax.grad(lambda x: jnp.sum(hvd.alltoall(x) ** 3 * (rank + 1))))(everything[rank])

    expected = _expected(lambda a: sum(jnp.sum(a[:, r] ** 3) * (r + 1) for r in range(size)), everything)
    np.testing.assert_allclose(result, expected[rank], rtol=1e-6)


def test_forward_mode_and_second_derivatives(rank, size):
    x, tangent = jnp.arange(3.0) + rank, jnp.ones(3) * (rank + 1)

    def total(v):
        return hvd.allreduce(v**3, op=hvd.Sum)

    value, change = jax.jvp(total, (x,), (tangent,))
    everything = [np.arange(3.0) + r for r in range(size)]
    assert_same(value, sum(v**3 for v in everything))
    assert_same(change, sum(3 * v**2 * (r + 1) for r, v in enumerate(everything)))
    jacobian = jax.jacfwd(lambda v: hvd.allreduce(v, op=hvd.Sum))(x)
    assert_same(jacobian, np.eye(3) * size)
    hessian = jax.jit(jax.hessian(lambda v: jnp.sum(hvd.allreduce(v, op=hvd.Sum) ** 2)))(x)
    assert_same(hessian, 2 * size * size * np.eye(3))


def test_gradient_through_a_loop(rank, size):
    def loss(x):
        def turn(c, _):
            return hvd.allreduce(c * 1.5), None

        return jnp.sum(jax.lax.scan(turn, x, None, 3)[0])

    assert_same(jax.jit(jax.grad(loss))(jnp.ones(2)), np.full(2, 1.5**3))


def test_integers_in_a_tree_have_no_gradients(size):
    def loss(x):
        tree = hvd.allreduce({"x": x, "count": jnp.ones(2, jnp.int32)}, op=hvd.Sum)
        return jnp.sum(tree["x"] * tree["count"])

    assert_same(jax.jit(jax.grad(loss))(jnp.ones(2)), np.full(2, size * size))


def test_adasum_has_no_derivative():
    with pytest.raises(NotImplementedError, match="cannot be differentiated"):
        jax.grad(lambda x: jnp.sum(hvd.allreduce(x, op=hvd.Adasum)))(jnp.ones(2))


def test_grad_and_value_and_grad(rank, size):
    def loss(params, x, scale=1.0):
        return jnp.sum(params["w"] * x) * scale, {"seen": x}

    params, x = {"w": jnp.ones(2)}, jnp.full(2, rank + 1.0)
    (value, aux), gradients = jax.jit(hvd.value_and_grad(loss, has_aux=True))(params, x)
    alone, aux_again = hvd.grad(loss, has_aux=True)(params, x, scale=2.0)

    mean = (size + 1) / 2
    assert_same(value, 2.0 * (rank + 1))
    assert_same(aux["seen"], x)
    assert_same(aux_again["seen"], x)
    assert_same(gradients["w"], np.full(2, mean))
    assert_same(alone["w"], np.full(2, 2 * mean))
