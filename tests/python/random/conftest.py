"""Random programs: see program.py for what they are, generator.py for what is in them.

A failure prints how to run its program again; replay.py does that.
"""

from __future__ import annotations

import os

# Read when torch is imported: a process that forks has one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")
