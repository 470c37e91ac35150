"""A name for every place where a program calls a collective, not only for every place where it is written.

JAX traces a function once and uses the result wherever it is called again: jitted and checkpointed functions,
bodies of loops, branches. XLA then runs the calls of one program in any order, so they must not share a name.
Names are told apart in the finished program, in the order of its text, which is the same on all ranks.

JAX has no public place for that. The one used here is the function that turns a traced program into XLA's
language; its first two arguments are the same in all releases that were tried.
"""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ._primitive import collective_p

_logger = logging.getLogger("horovod")


def with_own_names(program: Any, seen: Counter[str] | None = None) -> Any:
    """Return the program with other names where one of ours is there already; itself if all are different."""
    names = Counter[str]() if seen is None else seen
    open_program = getattr(program, "jaxpr", program)
    if open_program is not program:  # closed over constants
        inside = with_own_names(open_program, names)
        return program if inside is open_program else program.replace(jaxpr=inside)
    lines = [_with_own_names_inside(line, names) for line in program.eqns]
    is_same = all(new is old for new, old in zip(lines, program.eqns, strict=True))
    return program if is_same else program.replace(eqns=lines)


def _with_own_names_inside(line: Any, names: Counter[str]) -> Any:
    if line.primitive is collective_p:
        spec = line.params["spec"]
        if not spec.is_named_by_us:
            return line
        names[spec.name] += 1
        count = names[spec.name]
        return (
            line if count == 1 else line.replace(params={"spec": replace(spec, name=f"{spec.name}#{count}")})
        )
    params = {key: _replace_programs(value, names) for key, value in line.params.items()}
    is_same = all(params[key] is line.params[key] for key in params)
    return line if is_same else line.replace(params=params)


def _replace_programs(value: Any, names: Counter[str]) -> Any:
    if hasattr(value, "eqns"):
        return with_own_names(value, names)
    if isinstance(value, tuple) and any(hasattr(item, "eqns") for item in value):
        items = tuple(_replace_programs(item, names) for item in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def register() -> None:
    """Have it done for every program of this process; once."""
    try:
        from jax._src.interpreters import mlir  # noqa: PLC0415 - may be missing in a later release

        lower: Callable[..., Any] = mlir.lower_jaxpr_to_module
    except (ImportError, AttributeError):
        _logger.warning(
            "this release of JAX is newer than those that horovod.jax was tried with: call a function that "
            "contains a collective (jitted, checkpointed, the body of a loop) at most once in a program, or "
            "give its collectives names"
        )
        return

    @functools.wraps(lower)
    def lower_with_own_names(module_name: str, jaxpr: Any, *args: Any, **kwargs: Any) -> Any:
        return lower(module_name, with_own_names(jaxpr), *args, **kwargs)

    mlir.lower_jaxpr_to_module = lower_with_own_names
