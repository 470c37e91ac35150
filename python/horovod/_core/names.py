"""Names of operations, as they appear in the timeline, in stall reports and in errors.

Ranks match operations by name. An operation that the user gave no name stays without one: the core
then matches by kind and order, and a loop over an unnamed operation finds its agreement again.
"""

from __future__ import annotations


def operation_name(operation: str, name: str | None) -> str | None:
    """`<operation>.<name>`; an empty name is none."""
    return f"{operation}.{name}" if name else None


def group_names(operation: str, name: str | None, count: int) -> list[str | None]:
    """`grouped_<operation>.<name>_<i>of<count>` for each tensor, i from 1."""
    if not name:
        return [None] * count
    return [f"grouped_{operation}.{name}_{i}of{count}" for i in range(1, count + 1)]
