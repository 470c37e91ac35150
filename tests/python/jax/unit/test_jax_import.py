"""Which releases of JAX are taken."""

from __future__ import annotations

import os
import subprocess
import sys

from horovod.jax._library import OLDEST_JAX


def import_with(version: tuple[int, int, int]) -> subprocess.CompletedProcess[str]:
    """Import the front end in a process whose JAX says that it is another release."""
    program = (
        "import jax\n"
        f"jax.__version_info__, jax.__version__ = {version}, '{'.'.join(map(str, version))}'\n"
        "import horovod.jax\n"
        "print('imported')"
    )
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )


def test_a_release_that_is_too_old_is_refused_with_both_versions():
    assert OLDEST_JAX == (0, 6, 2)  # as the docs say

    done = import_with((0, 6, 1))

    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last == "ImportError: horovod.jax needs JAX 0.6.2 or newer, found 0.6.1"


def test_the_oldest_release_and_ones_that_are_not_known_yet_are_taken():
    for version in (OLDEST_JAX, (1, 0, 0)):
        done = import_with(version)
        assert done.stdout.strip() == "imported", done.stderr
