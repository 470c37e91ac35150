"""A host is lost with its link: when the others notice, and how long until their next step.

Two hosts as network namespaces of this machine, two workers on each; the second one joins the job of the
first, so that nothing but the link is between them. Needs root.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from elasticbench.suite_recovery import NANOSECONDS, horovodrun, wait_for_world
from elasticbench.watching import WatchedJob

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESSES = ("10.213.78.1", "10.213.78.2")
LINK = "bench0"
PORT = 4711  # of a network that nobody else is in
PER_HOST = 2
ENTER = 'hostname "$0" && exec "$@"'


def why_not() -> str | None:
    """Why there are no hosts here; None: there are."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with _hosts():
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"network namespaces are not permitted: {error}"


def measure(rounds: int) -> tuple[list[float], list[float]]:
    """Return the seconds from each cut until the last survivor notices, and from there to its next step."""
    found = [_one_loss() for _ in range(rounds)]
    return [noticed for noticed, _ in found], [after for _, after in found]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)  # noqa: S603, S607


@contextmanager
def _hosts() -> Iterator[tuple[str, str]]:
    names = (f"hvd{os.getpid()}a", f"hvd{os.getpid()}b")
    made = []
    try:
        for name in names:
            _ip("netns", "add", name)
            made.append(name)
        _ip("link", "add", LINK, "netns", names[0], "type", "veth", "peer", "name", LINK, "netns", names[1])
        for name, address in zip(names, ADDRESSES, strict=True):
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", LINK)
            _ip("-n", name, "link", "set", LINK, "up")
        for name in names:
            _wait_for_carrier(name)
        yield names
    finally:
        for name in made:
            _ip("netns", "del", name)


def _wait_for_carrier(name: str) -> None:
    """Until the kernel has noticed that the link carries something, nobody listens on it."""
    look = ["ip", "-n", name, "-o", "link", "show", LINK]
    deadline = time.monotonic() + 20
    while "state UP" not in subprocess.run(look, check=True, capture_output=True, text=True).stdout:  # noqa: S603
        if time.monotonic() > deadline:
            message = f"the link of {name} does not come up"
            raise OSError(message)
        time.sleep(0.05)


def _one_loss() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder, _hosts() as names:
        key = Path(folder) / "key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(32))
        jobs = []
        try:
            for name in names:
                (Path(folder) / name).mkdir()
                jobs.append(WatchedJob(_command(name, Path(folder), key), Path(folder) / name))
            wait_for_world(jobs[0], 1, 2 * PER_HOST)
            time.sleep(0.3)  # in the middle of steps
            cut_at = time.monotonic_ns()
            _ip("-n", names[1], "link", "set", LINK, "down")
            after = wait_for_world(jobs[0], 2, PER_HOST).values()
            noticed_at = max(one[7] for one in after)
            (Path(folder) / "stop").touch()
            if jobs[0].finish() != 0:
                raise RuntimeError(jobs[0].tail())
            next_step = max(one[5] for one in after) - noticed_at
            return (noticed_at - cut_at) / NANOSECONDS, next_step / NANOSECONDS
        finally:
            for job in jobs:
                job.close()


def _command(name: str, folder: Path, key: Path) -> list[str]:
    launch = [horovodrun(), "-np", str(2 * PER_HOST), "--min-np", "1", "--slots-per-host", str(PER_HOST)]
    launch += ["--join", f"{ADDRESSES[0]}:{PORT}", "--key-file", str(key)]
    program = [sys.executable, "-m", "elasticbench.training", str(folder / "stop")]
    return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", ENTER, name, *launch, *program]
