"""How many workers a cluster has room for: an answer at once instead of a wait for what cannot come.

`slots` is pure. The capacity counts, not what is free now: a busy cluster is waited for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import ray


class NotEnoughSlotsError(TimeoutError):
    """The cluster is too small for the workers, however long one waits."""


def slots(nodes: Sequence[Mapping[str, float]], bundle: Mapping[str, float]) -> int:
    """How many bundles fit on nodes with these total resources, each on one node."""
    wanted = {name: amount for name, amount in bundle.items() if amount > 0}
    if not wanted:
        return sys.maxsize
    return sum(
        min(int(node.get(name, 0.0) / amount + 1e-9) for name, amount in wanted.items()) for node in nodes
    )


def _alive() -> list[dict[str, float]]:
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _can_grow() -> bool:
    """Whether an autoscaler may add nodes."""
    try:
        from ray._private.state import state  # noqa: PLC0415 - there is no public way to ask

        return state.get_max_resources_from_cluster_config() is not None
    except Exception:  # noqa: BLE001 - an internal interface; then the cluster is waited for
        return True


def _text(resources: Mapping[str, float]) -> str:
    names = [name for name in sorted(resources) if name in {"CPU", "GPU"}]
    return ", ".join(f"{resources[name]:g} {name}" for name in names) or "nothing"


def check_bundles(
    who: str, count: int, needs: Mapping[str, float], bundles: Sequence[Mapping[str, float]]
) -> None:
    """Raise NotEnoughSlotsError if the bundles of a placement group can never hold `count` workers."""
    room = slots(bundles, needs)
    if room >= count:
        return
    message = (
        f"{who}: expected room for {count} workers with {_text(dict(needs))} each, "
        f"the placement group has room for {room}. "
        f"Its bundles have {'; '.join(_text(one) for one in bundles)}"
    )
    raise NotEnoughSlotsError(message)


def check_capacity(who: str, count: int, bundle: Mapping[str, float], *, one_per_node: bool = False) -> None:
    """Raise NotEnoughSlotsError if the cluster can never hold `count` bundles."""
    if _can_grow():
        return
    nodes = _alive()
    room = sum(slots([node], bundle) > 0 for node in nodes) if one_per_node else slots(nodes, bundle)
    if room >= count:
        return
    unit = "nodes" if one_per_node else "workers"
    parts = "; ".join(_text(node) for node in nodes) or "no node is alive"
    message = (
        f"{who}: expected room for {count} {unit} with {_text(dict(bundle))} each, "
        f"the cluster has room for {room}. Its nodes have {parts}"
    )
    raise NotEnoughSlotsError(message)
