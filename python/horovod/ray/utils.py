"""Small helpers under the names that programs and Ray itself import."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import ray

from horovod.runner.util.network import local_addresses


def map_blocking(fn: Callable[[Any], Any], collection: Iterable[Any]) -> list[Any]:
    """The values behind the references that `fn` returns for the items."""
    values: list[Any] = ray.get([fn(item) for item in collection])
    return values


def nics_to_env_var(nics: Collection[str]) -> dict[str, str]:
    """The interfaces as workers read them."""
    names = ",".join(sorted(nics))
    return {"HOROVOD_GLOO_IFACE": names, "NCCL_SOCKET_IFNAME": names}


def _interfaces(_executable: Any = None) -> dict[str, set[str]]:
    return local_addresses()


def detect_nics(
    settings: Any, all_host_names: Sequence[str], node_workers: Sequence[Any] | None = None
) -> set[str]:
    """The interfaces to use: those of the settings, or those that all nodes have, without loopback.

    `node_workers` is one worker per node. RuntimeError if the nodes have no interface in common.
    """
    given = getattr(settings, "nics", None)
    if given:
        return {given} if isinstance(given, str) else set(given)
    if node_workers:
        found = map_blocking(lambda worker: worker.execute.remote(_interfaces), node_workers)
    else:
        found = [local_addresses()]
    common = set.intersection(*(set(one) for one in found))
    outside = {
        name for name in common if not any(address.startswith("127.") for address in found[0].get(name, ()))
    }
    # Nodes of one machine may have the loopback interface alone.
    chosen = outside or (common if len(set(all_host_names)) <= 1 else set())
    if not chosen:
        message = (
            f"the nodes {sorted(set(all_host_names))} have no network interface in common; "
            f"they have {[sorted(one) for one in found]}; name those to use with nics="
        )
        raise RuntimeError(message)
    return chosen
