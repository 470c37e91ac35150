"""Makes a program from a seed: pure, and the same on every machine.

Programs differ in character, not only in detail: each draws which kinds, sizes, names and disturbances it
has at all.
"""

from __future__ import annotations

import dataclasses
from random import Random

from operations import OperationMaker
from profiles import Limits, draw_profile
from program import Program
from schedules import draw_habits, schedule

TUNINGS = (
    "small_bytes=104 chunk_bytes=16384 part_bytes=16384 pace=deep",
    "small_bytes=32768 one_shot_bytes=2048 progress=background spin_count=0 yield_count=0",
)
"""What the file of a profile holds, as the value of its variable."""

_SETTINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("HOROVOD_CACHE_CAPACITY", ("0", "1", "2", "2", "5", "5", "1024", "1024", "1024", "1024")),
    ("HOROVOD_PROGRESS", ("", "", "waiter", "background")),
    ("HOROVOD_SPIN_COUNT", ("", "", "0", "50")),
    ("HOROVOD_YIELD_COUNT", ("", "", "0", "5")),
    ("HOROVOD_FUSION_THRESHOLD", ("", "", "0", "1000")),
    ("HOROVOD_CYCLE_TIME", ("", "", "0", "5")),
    ("HOROVOD_TIMELINE", ("", "", "", "timeline.json")),
    ("HOROVOD_AUTOTUNE", ("", "", "", "1")),
    ("HOROVOD_AUTOTUNE_PROFILE", ("", "", *TUNINGS)),
)
"""Drawn once per program; empty: not set."""


def generate(seed: int, limits: Limits | None = None) -> Program:
    """The program of a seed, within limits."""
    limits = limits or Limits()
    random = Random(seed)
    size = random.choice(limits.sizes)
    hosts = _draw_hosts(random, size) if limits.two_hosts else (size,)
    profile = draw_profile(random, limits)
    maker = OperationMaker(random, profile, size)
    program = Program(
        seed=seed,
        hosts=hosts,
        settings=_draw_settings(random, limits),
        sets=(),
        operations=tuple(maker.make()),
    )
    program = dataclasses.replace(program, sets=tuple(maker.sets))
    actions = tuple(
        schedule(program, rank, draw_habits(random, profile.manner), Random(random.random()))
        for rank in range(size)
    )
    return dataclasses.replace(program, actions=actions)


def _draw_hosts(random: Random, size: int) -> tuple[int, ...]:
    first = random.randint(1, size - 1)
    return (first, size - first)


def _draw_settings(random: Random, limits: Limits) -> tuple[tuple[str, str], ...]:
    drawn = [(name, random.choice(values)) for name, values in _SETTINGS]
    drawn.append(("HOROVOD_TLS", random.choice(("", "", "", "1")) if limits.tls else ""))
    encrypts = drawn[-1][1] != ""  # which Gloo cannot
    carrier = random.choice(("", "", "", "gloo")) if limits.two_hosts and not encrypts else ""
    drawn.append(("HOROVOD_CPU_OPERATIONS", carrier))
    return tuple((name, value) for name, value in drawn if value)
