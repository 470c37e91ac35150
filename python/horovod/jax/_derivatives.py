"""Derivatives of collectives: of the sum of what all ranks differentiate.

A collective on several ranks is one function of the arrays of all of them. Its transpose on a rank says how
the losses of all ranks together change with this rank's array: what grad gives, reduced where it must be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad

from horovod._core import _native, codes

from ._primitive import bind, collective_p
from ._spec import Collective, scattered_rows

# ---- forward


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, spec: Collective) -> tuple[list[Any], list[Any]]:
    results = bind(primals, spec)
    # Integers have no tangents, nor have constants.
    chosen = [index for index, tangent in enumerate(tangents) if type(tangent) is not ad.Zero]
    out: list[Any] = [ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results]
    if not chosen:
        return results, out
    arrays = [primals[index] for index in chosen]
    given = [tangents[index] for index in chosen]
    rows = tuple(spec.rows[index] for index in chosen) if spec.rows else ()
    follower = spec.derived("tangent", rows=rows)
    if spec.is_linear:
        made = bind(given, follower)
    else:
        made = _tangents_of_reduction(arrays, [results[index] for index in chosen], given, follower)
    for index, tangent in zip(chosen, made, strict=True):
        out[index] = tangent
    return results, out


def _tangents_of_reduction(
    arrays: Sequence[Any], results: Sequence[Any], tangents: Sequence[Any], spec: Collective
) -> list[Any]:
    """Return the tangents of a minimum, a maximum or a product: sums of tangents with weights."""
    is_scaled = spec.prescale != 1.0 or spec.postscale != 1.0
    if spec.kind != codes.ALLREDUCE or spec.op == codes.ADASUM or is_scaled:
        what = codes.REDUCE_OP_NAMES[spec.op]
        message = f"{spec.label}: {spec.operation} with op={what} and factors cannot be differentiated"
        raise NotImplementedError(message)
    total = spec.derived("sum", op=codes.SUM, wire=codes.NO_WIRE_DTYPE)
    if spec.op == codes.PRODUCT:
        others = _products_of_others(arrays, spec)
        return bind([t * other for t, other in zip(tangents, others, strict=True)], total)
    # The ranks that have the extreme value share the derivative.
    is_extreme = [(a == r).astype(r.dtype) for a, r in zip(arrays, results, strict=True)]
    counts = bind(is_extreme, spec.derived("count", op=codes.SUM, wire=codes.NO_WIRE_DTYPE))
    weighted = [t * mask / n for t, mask, n in zip(tangents, is_extreme, counts, strict=True)]
    return bind(weighted, total)


def _products_of_others(arrays: Sequence[Any], spec: Collective) -> list[Any]:
    gather = spec.derived(
        "others", kind=codes.ALLGATHER, op=codes.SUM, rows=(spec.set_size,) * len(arrays), in_place=False
    )
    gathered = bind([array[None] for array in arrays], gather)
    return [jnp.prod(jnp.delete(values, spec.set_rank, axis=0), axis=0) for values in gathered]


# ---- backward


def _transpose(cotangents: Sequence[Any], *arrays: Any, spec: Collective) -> list[Any]:
    given = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    rows = [array.aval.shape[0] if spec.moves_rows else 0 for array in arrays]
    if spec.kind == codes.ALLREDUCE:
        return bind(given, spec.derived("gradient"))
    if spec.kind == codes.BROADCAST:
        total = spec.derived("gradient", kind=codes.ALLREDUCE, op=codes.SUM)
        # Part of the computation on every rank: a result that is not used would not be computed.
        is_root = jnp.asarray(_native.rank() == spec.root_rank)
        return [jnp.where(is_root, g, jnp.zeros_like(g)) for g in bind(given, total)]
    if spec.kind == codes.ALLGATHER:
        return bind(given, spec.derived("gradient", kind=codes.REDUCESCATTER, op=codes.SUM, rows=()))
    if spec.kind == codes.ALLTOALL:
        back = spec.derived("gradient", splits=spec.received, received=spec.splits)
        return bind(given, back)
    return _transpose_of_reducescatter(given, rows, spec)


def _transpose_of_reducescatter(given: Sequence[Any], rows: Sequence[int], spec: Collective) -> list[Any]:
    factor = spec.prescale * spec.postscale / (spec.set_size if spec.op == codes.AVERAGE else 1)
    gather = spec.derived(
        "gradient",
        kind=codes.ALLGATHER,
        op=codes.SUM,
        prescale=1.0,
        postscale=1.0,
        wire=codes.NO_WIRE_DTYPE,
        rows=tuple(sum(scattered_rows(count, spec.set_size)) for count in rows),
        in_place=False,
    )
    gathered = bind(given, gather)
    return list(gathered) if factor == 1.0 else [g * jnp.asarray(factor, g.dtype) for g in gathered]


ad.primitive_jvps[collective_p] = _jvp
ad.primitive_transposes[collective_p] = _transpose
