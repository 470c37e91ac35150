"""Disagreements raise on every rank, inside jit too; what is refused, and what it says."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import WAYS, assert_same

import horovod.jax as hvd

RuntimeFailure = jax.errors.JaxRuntimeError


def _done(value):
    return jax.block_until_ready(value)


@pytest.mark.disagreement
@pytest.mark.parametrize("way", WAYS)
def test_other_shapes(way, rank):
    with pytest.raises(RuntimeFailure, match="Mismatched ALLREDUCE tensor shapes"):
        _done(way(lambda x: hvd.allreduce(x, name="shapes"), jnp.ones(2 + rank)))


@pytest.mark.disagreement
@pytest.mark.parametrize("way", WAYS)
def test_other_dtypes(way, rank):
    dtype = jnp.float32 if rank == 0 else jnp.int32

    with pytest.raises(RuntimeFailure, match="Mismatched data types"):
        _done(way(lambda x: hvd.allreduce(x, name="dtypes"), jnp.ones(2, dtype)))


@pytest.mark.disagreement
def test_other_roots_and_factors(rank):
    with pytest.raises(RuntimeFailure, match="root"):
        _done(jax.jit(lambda x: hvd.broadcast(x, rank, name="roots"))(jnp.ones(2)))
    with pytest.raises(RuntimeFailure, match="prescale"):
        _done(hvd.allreduce(jnp.ones(2), prescale_factor=1.0 + rank, name="factors"))
    with pytest.raises(hvd.HorovodInternalError, match="root"):
        hvd.broadcast(jnp.ones(2), rank, name="eager roots")


def test_the_job_goes_on_after_a_disagreement(rank, size):
    for _ in range(3):
        if size > 1:
            with pytest.raises(RuntimeFailure):
                _done(jax.jit(lambda x: hvd.allreduce(x, name="again"))(jnp.ones(2 + rank)))
        assert_same(hvd.allreduce(jnp.ones(2), op=hvd.Sum), np.full(2, size))


def test_what_one_rank_can_see_alone(size):
    with pytest.raises(ValueError, match="splits"):
        hvd.alltoall(jnp.ones(size), splits=[2] * size)
    with pytest.raises(ValueError, match="one dimension"):
        hvd.alltoall(jnp.ones(size), splits=[[1] * size])
    with pytest.raises(ValueError, match="root"):
        hvd.broadcast(jnp.ones(2), size)
    with pytest.raises(RuntimeFailure, match="root"):
        _done(jax.jit(lambda x: hvd.broadcast(x, size))(jnp.ones(2)))
    with pytest.raises(ValueError, match="reduce op 9 is not valid"):
        hvd.allreduce(jnp.ones(2), op=9)
    with pytest.raises(TypeError, match="expected arrays and numbers, got str"):
        hvd.allreduce({"a": "text"})
    with pytest.raises(TypeError, match="float8"):
        hvd.allreduce(jnp.ones(2, jnp.float8_e4m3fn))


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("operation", [hvd.allreduce, hvd.reducescatter])
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_sums_of_unsigned_numbers_are_not_scaled(way, operation, dtype, size):
    """The core adds them up as signed ones: half of a large one would be half of a negative one."""
    large = jnp.full(size, 4_000_000_000, dtype)
    for factors in ({"prescale_factor": 0.5}, {"postscale_factor": 0.5}):
        with pytest.raises(TypeError, match=f"sums of {dtype} cannot be scaled"):
            way(lambda x, factors=factors: operation(x, op=hvd.Sum, **factors), large)


@pytest.mark.parametrize("operation", [hvd.allgather, hvd.alltoall])
def test_numbers_of_less_than_a_byte_are_refused(operation, size):
    for dtype in (jnp.int4, jnp.uint4):
        with pytest.raises(TypeError, match="int4 are not supported"):
            operation(jnp.ones(size, dtype))
    assert_same(hvd.broadcast(jnp.arange(-3, 4, dtype=jnp.int4), 0), np.arange(-3, 4), "int4")


def test_a_set_that_is_not_registered():
    with pytest.raises(ValueError, match="not registered"):
        hvd.allreduce(jnp.ones(2), process_set=hvd.ProcessSet([0]))


def test_before_init():
    program = jax.jit(hvd.allreduce)
    program(jnp.ones(2))
    hvd.shutdown()
    with pytest.raises(ValueError, match=r"hvd\.init"):
        hvd.allreduce(jnp.ones(2))
    with pytest.raises((RuntimeFailure, ValueError), match="init"):  # JAX's quick path has a type of its own
        _done(program(jnp.ones(2)))
    hvd.init()
    assert_same(program(jnp.ones(2)), np.ones(2))


def test_other_platforms_are_explained():
    with pytest.raises(NotImplementedError, match="JAX_PLATFORMS=cpu"):
        jax.jit(hvd.allreduce).trace(jnp.ones(2)).lower(lowering_platforms=("rocm",))


def test_programs_of_gpus_call_the_same_target():
    lowered = jax.jit(hvd.allreduce).trace(jnp.ones(2)).lower(lowering_platforms=("cuda",))
    assert "@horovod_collective" in lowered.as_text()
