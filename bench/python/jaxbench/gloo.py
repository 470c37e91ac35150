"""JAX's own collectives between processes: jax.distributed, a mesh of all of them, psum over Gloo."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import jax
from benchlib.world import World
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "ranks"


def start(world: World) -> None:
    """Make one runtime of all ranks; before JAX is asked for anything."""
    place = ""
    if world.is_first:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{free.getsockname()[1]}"
    place = world.object_from_first(place)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(place, world.size, world.rank)


def mesh() -> Mesh:
    """Return all ranks in a row."""
    return Mesh(jax.devices(), (AXIS,))


def spread(tree: Any, where: Mesh) -> Any:
    """Return arrays whose rows are those of the ranks, one each."""
    sharding = NamedSharding(where, PartitionSpec(AXIS))

    def one(array: Any) -> Any:
        shape = (where.size, *array.shape)
        return jax.make_array_from_single_device_arrays(shape, sharding, [array[None]])

    return jax.tree.map(one, tree)


def replicated(tree: Any, where: Mesh) -> Any:
    """Return arrays that every rank has."""
    sharding = NamedSharding(where, PartitionSpec())

    def one(array: Any) -> Any:
        return jax.make_array_from_single_device_arrays(array.shape, sharding, [array])

    return jax.tree.map(one, tree)


def on_ranks(function: Callable[..., Any], where: Mesh, given: Any, result: Any) -> Callable[..., Any]:
    """Return a program in which every rank runs a function on its own part."""
    mapped: Callable[..., Any] = jax.shard_map(
        function, mesh=where, in_specs=given, out_specs=result, check_vma=False
    )
    return mapped
