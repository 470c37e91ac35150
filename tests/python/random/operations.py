"""Draws the operations of a program: pure. What ranks do with them is drawn in schedules.py."""

from __future__ import annotations

import dataclasses
from random import Random

from profiles import Profile
from program import GROUPED_KINDS, WORLD, Kind, Operation, RankSet, TensorSpec
from tensor_specs import (
    draw_gathered,
    draw_reducing,
    draw_rows,
    draw_shape,
    draw_splits,
    may_mix_dtypes,
)

_ELEMENTS = 3_000_000
"""All tensors of a program together, by rank: bounds its time and memory."""


class OperationMaker:
    """Draws operations one after the other, and the sets that they need."""

    def __init__(self, random: Random, profile: Profile, size: int) -> None:
        self._random = random
        self._profile = profile
        self._size = size
        self._known: dict[tuple[int, Kind, bool, str | None], Operation] = {}
        self._elements_left = _ELEMENTS
        self.sets = [RankSet(tuple(range(size)), static=True)]
        self._alive = [WORLD]
        for _ in range(random.choice((0, 1, 2))):
            self._draw_set(static=True)

    def make(self) -> list[Operation]:
        """All operations of a program."""
        operations: list[Operation] = []
        while len(operations) < self._profile.length:
            if self._random.random() < self._profile.jobwide:
                operations += self._jobwide()
            operations.append(self._ordinary())
        return operations

    def _draw_set(self, *, static: bool) -> int | None:
        """Place of a new set; None: what was drawn is there already."""
        members = self._random.sample(range(self._size), self._random.randint(1, self._size - 1))
        ranks = tuple(sorted(members))
        if any(self.sets[place].ranks == ranks for place in self._alive):
            return None
        self.sets.append(RankSet(ranks, static))
        self._alive.append(len(self.sets) - 1)
        return self._alive[-1]

    # ---- operations of one set

    def _ordinary(self) -> Operation:
        random, profile = self._random, self._profile
        place = random.choice(self._alive) if random.random() < profile.in_sets else WORLD
        operation = self._in_set(random.choice(profile.kinds), place)
        members = self.sets[place].ranks
        is_allreduce = operation.kind is Kind.ALLREDUCE and operation.wire is None
        can_disagree = is_allreduce and operation.name is not None and len(members) > 1
        if can_disagree and random.random() < profile.disagrees:
            return dataclasses.replace(operation, disagrees=random.choice(members))
        return operation

    def _in_set(self, kind: Kind, place: int) -> Operation:
        random, profile = self._random, self._profile
        name = None if random.random() < profile.unnamed else f"t{random.randrange(profile.names)}"
        if kind is Kind.BARRIER:
            return Operation(kind, place)
        if kind in {Kind.BROADCAST_OBJECT, Kind.ALLGATHER_OBJECT}:
            root = random.choice(self.sets[place].ranks)
            return Operation(kind, place, name, root=root, seed=random.getrandbits(32))
        grouped = kind in GROUPED_KINDS and random.random() < profile.grouped
        key = (place, kind, grouped, name)
        known = self._known.get(key)
        if known is None or random.random() < profile.changes:
            known = self._tensor_operation(kind, place, name, grouped)
        elif kind is Kind.ALLGATHER and random.random() < profile.changes:
            known = dataclasses.replace(known, tensors=tuple(map(self._other_rows, known.tensors)))
        self._known[key] = known
        self._elements_left -= _elements(known)
        if self._elements_left < 0:
            self._known.clear()
        return dataclasses.replace(known, seed=random.getrandbits(32))

    def _tensor_operation(self, kind: Kind, place: int, name: str | None, grouped: bool) -> Operation:
        random = self._random
        members = len(self.sets[place].ranks)
        dtype = random.choice(self._profile.dtypes)
        reducing = draw_reducing(random, kind, dtype)
        dtypes = [dtype] * (random.choice((1, 2, 3, 8)) if grouped else 1)
        if len(dtypes) > 1 and random.random() < 0.3 and may_mix_dtypes(kind, reducing):
            dtypes = random.choices(self._profile.dtypes, k=len(dtypes))
        splits = None
        if kind is Kind.ALLTOALL and random.random() < 0.8:
            splits = draw_splits(random, self._draw_count(), members)
        wire = None
        if kind is Kind.ALLREDUCE and set(dtypes) == {"float32"} and reducing.reduce in {"Sum", "Average"}:
            wire = random.choice((None, None, None, None, "fp16", "bf16"))
        return Operation(
            kind,
            place,
            name,
            tensors=tuple(self._tensor(kind, entry, members, splits) for entry in dtypes),
            grouped=grouped,
            reduce=reducing.reduce,
            prescale=reducing.prescale,
            postscale=reducing.postscale,
            wire=wire,
            root=random.choice(self.sets[place].ranks),
            splits=splits,
            contents=reducing.contents,
        )

    def _draw_count(self) -> int:
        count = self._profile.sizes.draw(self._random)
        return count if self._elements_left > 0 else count % 100

    def _tensor(
        self, kind: Kind, dtype: str, members: int, splits: tuple[tuple[int, ...], ...] | None
    ) -> TensorSpec:
        random = self._random
        if kind is Kind.ALLGATHER:
            return draw_gathered(random, dtype, self._draw_count(), members)
        if kind is Kind.ALLTOALL:
            columns = random.choice(((), (), (3,)))
            if splits is not None:
                return TensorSpec(dtype, columns, tuple(sum(row) for row in splits))
            rows = draw_rows(random, self._draw_count() // (3 if columns else 1) // members, members)
            return TensorSpec(dtype, columns, tuple(members * row for row in rows))
        shape = draw_shape(random, self._draw_count())
        if kind is Kind.REDUCESCATTER and not shape:
            shape = (1,)
        return TensorSpec(dtype, shape)

    def _other_rows(self, spec: TensorSpec) -> TensorSpec:
        assert spec.rows is not None
        rows = draw_rows(self._random, max(spec.rows), len(spec.rows))
        return dataclasses.replace(spec, rows=rows)

    # ---- what happens to the job

    def _jobwide(self) -> list[Operation]:
        dynamic = [place for place in self._alive if not self.sets[place].static]
        choice = self._random.random()
        if choice < 0.4:
            added = self._draw_set(static=False)
            return [] if added is None else [Operation(Kind.ADD_SET, added)]
        if choice < 0.6 and dynamic:
            removed = self._random.choice(dynamic)
            self._alive.remove(removed)
            return [Operation(Kind.REMOVE_SET, removed)]
        if choice < 0.95:
            return self._join()
        self._alive = [place for place in self._alive if place not in dynamic]
        return [Operation(Kind.RESTART)]

    def _join(self) -> list[Operation]:
        """Some allreduces that fewer and fewer ranks take part in, then the join of all."""
        random = self._random
        length = random.choice((0, 1, 3, 10))
        cuts = [random.randint(0, length) for _ in range(self._size)]
        cuts[random.randrange(self._size)] = length
        # Sets of ranks that work until the end.
        working = [p for p in self._alive[1:] if all(cuts[rank] == length for rank in self.sets[p].ranks)]
        section: list[Operation] = []
        for step in range(length):
            operation = self._in_set(Kind.ALLREDUCE, WORLD)
            absent = tuple(rank for rank, cut in enumerate(cuts) if cut <= step)
            section.append(dataclasses.replace(operation, absent=absent))
            if working and random.random() < self._profile.in_sets:
                section.append(self._in_set(random.choice(self._profile.kinds), random.choice(working)))
        return [*section, Operation(Kind.JOIN)]


def _elements(operation: Operation) -> int:
    total = 0
    for spec in operation.tensors:
        count = sum(spec.rows) if spec.rows is not None else 1
        for length in spec.shape:
            count *= length
        total += count
    return total
