"""Dtypes, sizes, scales and contents of random operations, chosen so that every result is exact.

See contents.py for what the kinds of contents hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from program import Kind, TensorSpec

FLOATS = ("float16", "bfloat16", "float32", "float64")
BYTES = ("uint8", "int8")
INTEGERS = (*BYTES, "int16", "uint16", "int32", "int64")
DTYPES = (*FLOATS, *INTEGERS, "bool")

# Around the bounds between the paths of the core: what fits in a record (104 bytes), in a deposit (8 or
# 32 KiB), in a chunk (128 KiB), for elements of some size.
TINY = (0, 1, 2, 3, 7, 13, 17, 25, 26, 27, 52, 104)
MEDIUM = (200, 1000, 1023, 1025, 2047, 2048, 2049, 4096, 4100)
LARGE = (8191, 8192, 8193, 16385, 20000, 32767, 32769, 65537)
HUGE = (131071, 131073, 200000, 300000)


@dataclass(frozen=True)
class Sizes:
    """How often tensors of a class are drawn."""

    tiny: float
    medium: float
    large: float
    huge: float

    def draw(self, random: Random) -> int:
        """A number of elements."""
        weights = (self.tiny, self.medium, self.large, self.huge)
        return random.choice(random.choices((TINY, MEDIUM, LARGE, HUGE), weights)[0])


def draw_shape(random: Random, count: int) -> tuple[int, ...]:
    """A shape of about so many elements; of exactly so many if it has one dimension."""
    if count == 0:
        return random.choice(((0,), (0, 3), (3, 0)))
    if count == 1:
        return random.choice(((), (1,), (1, 1)))
    columns = random.choice((1, 1, 2, 3, 5))
    if columns == 1 or count < columns:
        return (count,)
    return (count // columns, columns) if random.random() < 0.8 else (count // columns, 1, columns)


def draw_rows(random: Random, count: int, members: int) -> tuple[int, ...]:
    """A number of rows for each member, `count` at most."""
    if random.random() < 0.3:
        return (count,) * members
    return tuple(random.choice((0, count, random.randint(0, count))) for _ in range(members))


def draw_gathered(random: Random, dtype: str, count: int, members: int) -> TensorSpec:
    """A tensor whose first dimension differs between members."""
    columns = random.choice(((), (), (3,), (2, 2)))
    rows = count // {(): 1, (3,): 3, (2, 2): 4}[columns]
    return TensorSpec(dtype, columns, draw_rows(random, rows, members))


def draw_splits(random: Random, count: int, members: int) -> tuple[tuple[int, ...], ...]:
    """Rows from each member to each, about `count` together for the largest."""
    most = max(count // members, 1)
    zeros = random.choice((0.0, 0.3, 0.9))
    return tuple(
        tuple(0 if random.random() < zeros else random.randint(0, most) for _ in range(members))
        for _ in range(members)
    )


@dataclass(frozen=True)
class Reducing:
    """How tensors of one dtype are combined, and of what."""

    reduce: str = "Sum"
    prescale: float = 1.0
    postscale: float = 1.0
    contents: str = "bits"


def draw_reducing(random: Random, kind: Kind, dtype: str) -> Reducing:
    """An operation that has an exact result for the dtype."""
    if kind not in {Kind.ALLREDUCE, Kind.REDUCESCATTER}:
        return Reducing()
    choice = ["Sum", "Average"]
    if kind is Kind.ALLREDUCE:
        choice += ["Sum", "Average", "Min", "Max", "Product"] + ["Adasum"] * (dtype in FLOATS)
    reduce = random.choice(choice)
    if reduce == "Adasum":
        return Reducing(reduce, contents=random.choice(("disjoint", "equal")))
    scaled = random.random() < 0.25
    if reduce == "Product" and dtype != "bool":
        scaled = scaled and dtype in FLOATS
        return Reducing(reduce, *_draw_scales(random, dtype, scaled), contents="factors")
    plain = "steps"
    if dtype in INTEGERS and not scaled:
        plain = "small" if reduce == "Average" else "bits"
    return Reducing(reduce, *_draw_scales(random, dtype, scaled), contents=plain)


def may_mix_dtypes(kind: Kind, reducing: Reducing) -> bool:
    """Whether the tensors of a group may have any dtypes, with exact results."""
    is_scaled = (reducing.prescale, reducing.postscale) != (1.0, 1.0)
    return kind is Kind.ALLGATHER or (reducing.contents in {"steps", "factors"} and not is_scaled)


def _draw_scales(random: Random, dtype: str, scaled: bool) -> tuple[float, float]:
    if not scaled:
        return 1.0, 1.0
    # Sums of bytes have no room to grow.
    factors = (1.0, 0.5) if dtype in BYTES else (1.0, 0.5, 2.0)
    return random.choice(factors), random.choice(factors)
