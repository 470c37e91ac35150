"""A program as short text that can be read: operations by number, then the actions of each rank."""

from __future__ import annotations

import textwrap

from program import OF_ALL_RANKS, WORLD, Action, Do, Form, Kind, Operation, Program, TensorSpec

_WIDTH = 110


def listing(program: Program) -> str:
    """Everything that there is to know about a program, except the contents of tensors."""
    placed = "" if len(program.hosts) == 1 else f" on hosts of {' and '.join(map(str, program.hosts))}"
    settings = " ".join(f"{name}={value}" for name, value in program.settings)
    lines = [f"program of seed {program.seed}: {program.size} ranks{placed}"]
    lines.append(f"  {settings or 'no settings'}")
    for place, entry in enumerate(program.sets[1:], 1):
        lines.append(f"  set {place}: ranks {_ranks(entry.ranks)}{', of init' if entry.static else ''}")
    for number, operation in enumerate(program.operations):
        lines.append(f"  {number}: {describe_operation(operation)}")
    for rank, actions in enumerate(program.actions):
        text = "; ".join(describe_action(action) for action in actions)
        lines.append(f"  rank {rank}:")
        lines += textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def describe_operation(operation: Operation) -> str:
    """One line."""
    parts = [("grouped_" if operation.grouped else "") + operation.kind.value]
    if operation.name is not None:
        parts.append(f"'{operation.name}'")
    parts += [_describe_tensor(spec) for spec in operation.tensors]
    if operation.kind in {Kind.ALLREDUCE, Kind.REDUCESCATTER}:
        parts.append(operation.reduce)
        if (operation.prescale, operation.postscale) != (1.0, 1.0):
            parts.append(f"scaled by {operation.prescale} before and {operation.postscale} after")
    if operation.wire is not None:
        parts.append(f"as {operation.wire}")
    if operation.kind in {Kind.BROADCAST, Kind.BROADCAST_OBJECT}:
        parts.append(f"from rank {operation.root}")
    if operation.splits is not None:
        parts.append(f"splits {[list(row) for row in operation.splits]}")
    if operation.process_set != WORLD:
        parts.append(f"{'' if operation.kind in OF_ALL_RANKS else 'in '}set {operation.process_set}")
    if operation.absent:
        parts.append(f"without {_ranks(operation.absent)}, joined")
    if operation.disagrees is not None:
        parts.append(f"with another dtype on rank {operation.disagrees}: an error")
    return " ".join(parts)


def describe_action(action: Action) -> str:
    """A few words."""
    if action.do is Do.STOP:
        return f"stopped in {action.after_ms:g} ms for {action.for_ms:g} ms"
    if action.do in {Do.SLEEP, Do.SPIN}:
        return f"{action.do.value} {action.for_ms:g} ms"
    words = f"{action.do.value} {action.operation}"
    if action.do is Do.SUBMIT and action.form is not Form.ASYNC:
        words += f" {action.form.value}"
    return f"{words} in shared memory" if action.shared else words


def _describe_tensor(spec: TensorSpec) -> str:
    if spec.rows is None:
        return f"{spec.dtype}{list(spec.shape)}"
    rows = "/".join(map(str, spec.rows))
    return f"{spec.dtype}[{', '.join([rows, *map(str, spec.shape)])}]"


def _ranks(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks))
