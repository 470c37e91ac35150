"""The character of a program: pure. Some are long and plain, others short and wild."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from program import TENSOR_KINDS, Kind
from schedules import Manner
from tensor_specs import DTYPES, Sizes


@dataclass(frozen=True)
class Limits:
    """What programs may ask for here."""

    sizes: tuple[int, ...] = (2, 3, 4)
    two_hosts: bool = False
    tls: bool = False
    """Between hosts."""
    stops: bool = True


@dataclass(frozen=True)
class Profile:
    """The character of a program; shares are between 0 and 1."""

    length: int
    kinds: tuple[Kind, ...]
    dtypes: tuple[str, ...]
    sizes: Sizes
    names: int
    unnamed: float
    changes: float
    """How often a name, or an operation without one, is not what it was the last time."""
    grouped: float
    in_sets: float
    jobwide: float
    """Operations before which something happens to the job: a set comes or goes, ranks join."""
    disagrees: float
    manner: Manner


_SIZES = (
    Sizes(tiny=1, medium=0, large=0, huge=0),
    Sizes(tiny=8, medium=4, large=1, huge=0),
    Sizes(tiny=4, medium=4, large=4, huge=1),
    Sizes(tiny=0, medium=1, large=4, huge=2),
)
_KINDS = (
    (Kind.ALLREDUCE, 6),
    (Kind.ALLGATHER, 3),
    (Kind.BROADCAST, 3),
    (Kind.ALLTOALL, 2),
    (Kind.REDUCESCATTER, 2),
    (Kind.BARRIER, 1),
    (Kind.BROADCAST_OBJECT, 1),
    (Kind.ALLGATHER_OBJECT, 1),
)


def draw_profile(random: Random, limits: Limits) -> Profile:
    """The character of a program."""
    floods = random.random() < 0.05
    kinds = [kind for kind, weight in _KINDS for _ in range(weight)]
    if random.random() < 0.5:
        kinds = random.sample(kinds, random.randint(1, 4))
    if floods:
        kinds = [kind for kind in kinds if kind in TENSOR_KINDS] or [Kind.ALLREDUCE]
    dtypes = DTYPES if random.random() < 0.6 else tuple(random.sample(DTYPES, 1))
    return Profile(
        length=random.randint(600, 1200) if floods else random.choice((8, 25, 50, 100, 200, 300)),
        kinds=tuple(kinds),
        dtypes=dtypes,
        sizes=_SIZES[0] if floods else random.choice(_SIZES),
        names=1000 if floods else random.choice((1, 2, 3, 6, 12, 40, 1000)),
        unnamed=random.choice((0.0, 0.2, 1.0)),
        changes=random.choice((0.0, 0.02, 0.1, 0.5)),
        grouped=random.choice((0.0, 0.2, 0.5)),
        in_sets=random.choice((0.0, 0.2, 0.6)),
        jobwide=0.0 if floods else random.choice((0.0, 0.02, 0.1)),
        disagrees=random.choice((0.0, 0.0, 0.05)),
        manner=Manner(
            reorders=random.random() < 0.75,
            pauses=random.random() < 0.6,
            stops=limits.stops and random.random() < 0.3,
            floods=floods,
            shares=random.random() < 0.2,
        ),
    )
