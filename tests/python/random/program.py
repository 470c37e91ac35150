"""What a random program is: operations that ranks run together, and what each rank does, action by action.

Plain values, the same on all ranks; as JSON they are a program that can be kept and run again. Neither
horovod nor torch is needed here.

Operations have numbers, their places in `Program.operations`. The numbers are the order that keeps a
program from blocking itself; see legality.py.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from dataclasses import dataclass, field
from typing import Any


class Kind(str, enum.Enum):
    """What an operation does."""

    ALLREDUCE = "allreduce"
    ALLGATHER = "allgather"
    BROADCAST = "broadcast"
    ALLTOALL = "alltoall"
    REDUCESCATTER = "reducescatter"
    BARRIER = "barrier"
    BROADCAST_OBJECT = "broadcast_object"
    ALLGATHER_OBJECT = "allgather_object"
    JOIN = "join"
    ADD_SET = "add_process_set"
    REMOVE_SET = "remove_process_set"
    RESTART = "restart"
    """Shutdown and init; sets that were added are gone then."""


TENSOR_KINDS = frozenset({Kind.ALLREDUCE, Kind.ALLGATHER, Kind.BROADCAST, Kind.ALLTOALL, Kind.REDUCESCATTER})
GROUPED_KINDS = frozenset({Kind.ALLREDUCE, Kind.ALLGATHER, Kind.REDUCESCATTER})
REDUCING_KINDS = frozenset({Kind.ALLREDUCE, Kind.REDUCESCATTER})
IN_PLACE_KINDS = frozenset({Kind.ALLREDUCE, Kind.BROADCAST})
OF_ALL_RANKS = frozenset({Kind.JOIN, Kind.ADD_SET, Kind.REMOVE_SET, Kind.RESTART})
"""About the job as a whole: every rank calls them, in the same order."""

WORLD = 0
"""The set of all ranks, by its place in `Program.sets`."""


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of an operation. Where members differ in the first dimension, `rows` says how."""

    dtype: str
    shape: tuple[int, ...]
    rows: tuple[int, ...] | None = None
    """First dimension by place in the set; then `shape` holds the other dimensions."""

    def shape_of(self, place: int) -> tuple[int, ...]:
        """Shape on the member at that place of the set."""
        return self.shape if self.rows is None else (self.rows[place], *self.shape)


@dataclass(frozen=True)
class Operation:
    """Something that all members of a set do together."""

    kind: Kind
    process_set: int = WORLD
    """The set it runs in; for ADD_SET and REMOVE_SET, the set that comes or goes."""
    name: str | None = None
    tensors: tuple[TensorSpec, ...] = ()
    grouped: bool = False
    reduce: str = "Sum"
    prescale: float = 1.0
    postscale: float = 1.0
    wire: str | None = None
    """The compression that all ranks ask for: fp16 or bf16. Only blocking calls take one."""
    root: int = 0
    """A rank of the job."""
    splits: tuple[tuple[int, ...], ...] | None = None
    """Rows that a member (first place) sends to another (second); None: as many to each."""
    absent: tuple[int, ...] = ()
    """Ranks that have joined before, and take part with zeros."""
    disagrees: int | None = None
    """A rank that brings another dtype, so that all members must get an error."""
    contents: str = "steps"
    """How tensors are filled; see contents.py."""
    seed: int = 0
    """Of the contents."""

    def is_async(self) -> bool:
        """Whether there is a form that returns a handle."""
        return self.kind in TENSOR_KINDS and self.wire is None

    def core_names(self) -> frozenset[str]:
        """Names by which the core knows it; each may be in flight once per rank and set."""
        if self.name is None:
            return frozenset()
        if self.grouped:
            count = len(self.tensors)
            return frozenset(f"grouped_{self.kind.value}.{self.name}_{i}of{count}" for i in range(count))
        return frozenset({f"{self.kind.value}.{self.name}"})

    def order_class(self) -> str | None:
        """Operations of one class in one set find their partners by order; None: by name."""
        if self.kind in OF_ALL_RANKS:
            return "job"
        if self.kind is Kind.BARRIER:
            return "barrier"
        if self.name is not None:
            return None
        return str(self.kind.value).removesuffix("_object")


class Form(str, enum.Enum):
    """How a rank calls an operation: its own choice, others may choose differently."""

    ASYNC = "async"
    ASYNC_IN_PLACE = "async in place"
    BLOCKING = "blocking"
    BLOCKING_IN_PLACE = "blocking in place"

    def blocks(self) -> bool:
        """Whether the call returns only when the operation is complete."""
        return self in {Form.BLOCKING, Form.BLOCKING_IN_PLACE}

    def is_in_place(self) -> bool:
        """Whether the result overwrites the input."""
        return self in {Form.ASYNC_IN_PLACE, Form.BLOCKING_IN_PLACE}


class Do(str, enum.Enum):
    """What an action is."""

    SUBMIT = "submit"
    WAIT = "wait"
    POLL = "poll"
    POLL_UNTIL_DONE = "poll until done"
    WAIT_ASIDE = "wait aside"
    """Another thread waits; a WAIT takes the result from it later."""
    SLEEP = "sleep"
    SPIN = "spin"
    STOP = "stop"
    """Another process stops this one by a signal, after a while and for a while."""


WAITS = frozenset({Do.WAIT, Do.POLL_UNTIL_DONE})
PAUSES = frozenset({Do.SLEEP, Do.SPIN, Do.STOP})


@dataclass(frozen=True)
class Action:
    """One step of one rank."""

    do: Do
    operation: int = -1
    """A number; of SUBMIT, WAIT and POLL."""
    form: Form = Form.ASYNC
    """Of SUBMIT."""
    shared: bool = False
    """Of SUBMIT: the tensor lies in memory that the ranks share."""
    after_ms: float = 0
    """Of STOP: when."""
    for_ms: float = 0
    """Of SLEEP, SPIN and STOP."""


@dataclass(frozen=True)
class RankSet:
    """A process set; one that is not static is added by an operation."""

    ranks: tuple[int, ...]
    static: bool


@dataclass(frozen=True)
class Program:
    """What all ranks do."""

    seed: int
    hosts: tuple[int, ...]
    """Ranks on each host."""
    settings: tuple[tuple[str, str], ...]
    """Environment variables."""
    sets: tuple[RankSet, ...]
    """The first is the world."""
    operations: tuple[Operation, ...]
    actions: tuple[tuple[Action, ...], ...] = field(default=())
    """By rank."""

    @property
    def size(self) -> int:
        """Number of ranks."""
        return sum(self.hosts)

    def members(self, operation: Operation) -> tuple[int, ...]:
        """Ranks that call the operation."""
        if operation.kind in OF_ALL_RANKS:
            return self.sets[WORLD].ranks
        return tuple(r for r in self.sets[operation.process_set].ranks if r not in operation.absent)


def to_json(program: Program) -> str:
    """One line of text."""
    return json.dumps(dataclasses.asdict(program))


def from_json(text: str) -> Program:
    """What to_json has written."""
    raw = json.loads(text)
    return Program(
        seed=raw["seed"],
        hosts=tuple(raw["hosts"]),
        settings=tuple((name, value) for name, value in raw["settings"]),
        sets=tuple(RankSet(tuple(entry["ranks"]), entry["static"]) for entry in raw["sets"]),
        operations=tuple(_operation(entry) for entry in raw["operations"]),
        actions=tuple(tuple(_action(entry) for entry in rank) for rank in raw["actions"]),
    )


def _operation(raw: dict[str, Any]) -> Operation:
    splits = raw["splits"]
    changed = {
        "kind": Kind(raw["kind"]),
        "tensors": tuple(_tensor(entry) for entry in raw["tensors"]),
        "splits": None if splits is None else tuple(tuple(row) for row in splits),
        "absent": tuple(raw["absent"]),
    }
    return Operation(**{**raw, **changed})


def _tensor(raw: dict[str, Any]) -> TensorSpec:
    rows = raw["rows"]
    return TensorSpec(raw["dtype"], tuple(raw["shape"]), None if rows is None else tuple(rows))


def _action(raw: dict[str, Any]) -> Action:
    return Action(**{**raw, "do": Do(raw["do"]), "form": Form(raw["form"])})
