"""How long the import of the front end takes beyond that of MXNet."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from benchlib.readings import CaseReadings, Entrant, Round

_LIMIT_MS: Final = 150.0
_PROGRAM: Final = """
import time
import mxnet
begin = time.perf_counter()
import horovod.mxnet
print(1000 * (time.perf_counter() - begin))
"""


def measure_import(count: int) -> CaseReadings:
    """Import in processes of their own; MXNet first, which is not counted."""
    rounds = []
    for _ in range(count):
        command = [sys.executable, "-W", "ignore", "-c", _PROGRAM]
        answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)  # noqa: S603
        rounds.append(Round([float(answer.stdout), _LIMIT_MS]))
    entrants = [Entrant("horovod.mxnet", "ours"), Entrant("figure", "limit")]
    return CaseReadings("np=1 import: beyond MXNet", "ms", 1, entrants, rounds)
