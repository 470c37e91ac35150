"""The primitive behind every collective: shapes, lowering to XLA, vmap; derivatives are in _derivatives.py.

It has no effect in JAX's sense: like lax.psum it is a function of what all ranks give it, works wherever
such functions do (scan, cond, checkpoint, custom derivatives), and programs with it are started by JAX's
quick path. A result that nobody uses is not computed; all ranks run the same program, so none of them does.
A barrier, which has no result, has an effect. In XLA all have a side effect: calls are neither merged nor
repeated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import batching, mlir

from horovod._core import codes

from ._library import HANDLERS, TARGET
from ._spec import Collective, names_are_counted

# jax.extend.core names the class, but importing jax.extend takes longer than all of this package.
_Primitive = type(jax.lax.add_p)
collective_p = _Primitive("horovod")
collective_p.multiple_results = True


def bind(arrays: Sequence[Any], spec: Collective) -> list[Any]:
    """Do it now, or make it part of the program that is being traced."""
    return list(collective_p.bind(*arrays, spec=spec))


# ---- outside of programs


@functools.lru_cache(maxsize=1024)
def _compiled(spec: Collective) -> Callable[..., list[Any]]:
    run: Callable[..., list[Any]] = jax.jit(lambda *arrays: collective_p.bind(*arrays, spec=spec))
    return run


@collective_p.def_impl
def _run(*arrays: Any, spec: Collective) -> list[Any]:
    # JAX starts programs of one thread one after the other, so order is enough.
    if spec.is_named_by_us:
        spec = replace(spec, name=None, is_named_by_us=False, in_place=False)
    return _compiled(spec)(*arrays)


# ---- inside


_NO_EFFECTS: frozenset[Any] = frozenset()


@functools.cache
def _effects_of_a_call() -> frozenset[Any]:
    """Return JAX's own mark for calls that are made although nobody uses their results."""
    result = jax.ShapeDtypeStruct((), jnp.int32)
    program = jax.make_jaxpr(jax.ffi.ffi_call(TARGET, result, has_side_effect=True))()
    return frozenset(program.effects)


@collective_p.def_effectful_abstract_eval
def _results(*arrays: Any, spec: Collective) -> tuple[list[Any], frozenset[Any]]:
    if spec.kind == codes.BARRIER:
        return [jax.core.ShapedArray((), jnp.int32)], _effects_of_a_call()
    shapes = [spec.result_shape(array.shape, index) for index, array in enumerate(arrays)]
    return [
        jax.core.ShapedArray(shape, array.dtype) for shape, array in zip(shapes, arrays, strict=True)
    ], _NO_EFFECTS


_has_programs = False


def has_programs() -> bool:
    """Return whether this process has compiled a program with a collective."""
    return _has_programs


def _lower(ctx: Any, *operands: Any, spec: Collective) -> Any:
    global _has_programs  # noqa: PLW0603 - a property of the process
    _has_programs = True
    if spec.is_named_by_us and not names_are_counted():
        message = (
            f"{spec.label}: this program reaches XLA by a way that horovod.jax does not know, where "
            "operations without names cannot be told apart; give this one a name"
        )
        raise NotImplementedError(message)
    aliases = {index: index for index in range(len(operands))} if spec.in_place else None
    call = jax.ffi.ffi_lowering(TARGET, has_side_effect=True, operand_output_aliases=aliases)
    attributes = {
        "kind": np.int32(spec.kind),
        "op": np.int32(spec.op),
        "wire": np.int32(spec.wire),
        "process_set": np.int32(spec.process_set),
        "root": np.int32(spec.root_rank),
        "group": np.int32(spec.is_group),
        "prescale": np.float64(spec.prescale),
        "postscale": np.float64(spec.postscale),
        "name": spec.name or "",
    }
    if spec.splits:
        attributes["splits"] = np.asarray(spec.splits, np.int32)
    return call(ctx, *operands, **attributes)


def _refuse(ctx: Any, *operands: Any, spec: Collective) -> Any:
    del ctx, operands
    message = (
        f"{spec.label}: horovod.jax works on {', '.join(HANDLERS)}; set JAX_PLATFORMS=cpu, "
        "or move arrays with jax.device_put(x, jax.devices('cpu')[0]) first"
    )
    raise NotImplementedError(message)


mlir.register_lowering(collective_p, _refuse)
for _platform in HANDLERS:
    mlir.register_lowering(collective_p, _lower, platform=_platform)


# ---- vmap


def _batch(arrays: Sequence[Any], dims: Sequence[Any], *, spec: Collective) -> tuple[list[Any], list[Any]]:
    if spec.op == codes.ADASUM and spec.kind == codes.ALLREDUCE:
        message = (
            f"{spec.label}: Adasum looks at whole arrays and cannot be mapped over a part of them by vmap"
        )
        raise NotImplementedError(message)
    if not spec.moves_rows:
        return bind(arrays, spec), list(dims)
    moved = [
        array if dim is None else jnp.moveaxis(array, dim, 1) for array, dim in zip(arrays, dims, strict=True)
    ]
    return bind(moved, spec), [None if dim is None else 1 for dim in dims]


batching.primitive_batchers[collective_p] = _batch
