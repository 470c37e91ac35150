"""A name for every place where a program calls a collective, not only for every place where it is written.

XLA runs the calls of one program in any order, so they must not share a name; programs of one thread are
started one after the other, so those of different programs may. Names are therefore told apart in the
finished program: by its own name, and a number in the order of its text, which is the same on all ranks.
What else a rank has traced is no matter: one that compiles a program again, or for itself alone, finds the
same names. And JAX traces a function once and uses the result wherever it is called again (jitted and
checkpointed functions, bodies of loops, branches), which only the finished program shows.

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
from ._spec import count_names

_logger = logging.getLogger("horovod")


def with_own_names(program: Any, module_name: str) -> Any:
    """Return the program with names of their own for operations that have one of ours; itself without any."""
    return _Walk(module_name).program(program)


class _Walk:
    """One walk through a program and those inside it."""

    def __init__(self, module_name: str) -> None:
        self._module_name = module_name
        self._names: Counter[str] = Counter()
        self._holds: dict[int, bool] = {}  # by identity, which lasts as long as the whole program

    def program(self, program: Any) -> Any:
        """Return it with names of its own, closed over constants or not."""
        if not self._holds_ours(program):
            return program
        open_program = getattr(program, "jaxpr", program)
        if open_program is not program:
            inside = self.program(open_program)
            return program if inside is open_program else program.replace(jaxpr=inside)
        lines = [self._line(line) for line in program.eqns]
        is_same = all(new is old for new, old in zip(lines, program.eqns, strict=True))
        return program if is_same else program.replace(eqns=lines)

    def _line(self, line: Any) -> Any:
        if _is_ours(line):
            spec = line.params["spec"]
            self._names[spec.name] += 1
            name = f"{spec.name}.{self._module_name}.{self._names[spec.name]}"
            return line.replace(params={"spec": replace(spec, name=name, is_named_by_us=False)})
        params = {key: self._value(value) for key, value in line.params.items()}
        if params.get("unroll", 1) != 1 and any(map(self._holds_ours_inside, line.params.values())):
            # Copies are made later, where nobody tells them apart.
            params["unroll"] = 1
        is_same = all(params[key] is line.params[key] for key in params)
        return line if is_same else line.replace(params=params)

    def _value(self, value: Any) -> Any:
        if hasattr(value, "eqns"):
            return self.program(value)
        if isinstance(value, tuple) and any(hasattr(item, "eqns") for item in value):
            items = [self._value(item) for item in value]
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value

    def _holds_ours(self, program: Any) -> bool:
        found = self._holds.get(id(program))
        if found is None:
            found = any(
                _is_ours(line) or any(map(self._holds_ours_inside, line.params.values()))
                for line in program.eqns
            )
            self._holds[id(program)] = found
        return found

    def _holds_ours_inside(self, value: Any) -> bool:
        if hasattr(value, "eqns"):
            return self._holds_ours(value)
        items = value if isinstance(value, tuple) else ()
        return any(self._holds_ours(item) for item in items if hasattr(item, "eqns"))


def _is_ours(line: Any) -> bool:
    return line.primitive is collective_p and line.params["spec"].is_named_by_us


def register() -> None:
    """Have it done for every program of this process; once."""
    try:
        from jax._src.interpreters import mlir  # noqa: PLC0415 - may be missing in a later release

        lower: Callable[..., Any] = mlir.lower_jaxpr_to_module
    except (ImportError, AttributeError):
        _logger.warning(
            "this release of JAX is newer than those that horovod.jax was tried with: call a function that "
            "contains a collective (jitted, checkpointed, the body of a loop) at most once in a program, and "
            "trace the same programs on every rank; or give collectives names"
        )
        count_names()
        return

    @functools.wraps(lower)
    def lower_with_own_names(module_name: str, jaxpr: Any, *args: Any, **kwargs: Any) -> Any:
        return lower(module_name, with_own_names(jaxpr, module_name), *args, **kwargs)

    mlir.lower_jaxpr_to_module = lower_with_own_names
