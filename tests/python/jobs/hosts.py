"""Hosts with networks and names of their own: namespaces joined by a bridge, for one test.

Nothing has a name outside: a host is a process that holds its namespaces, and ends with the test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import final

import pytest
from job import LIMIT_SECONDS, Ended, clean_environment

_STEP_SECONDS = 20


def why_not() -> str | None:
    """Why hosts cannot be made here; None: they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    tried = subprocess.run(
        ["unshare", "--net", "--uts", "ip", "link", "add", "br0", "type", "bridge"],
        capture_output=True,
        text=True,
        timeout=_STEP_SECONDS,
        check=False,
    )
    return None if tried.returncode == 0 else f"network namespaces are not permitted: {tried.stderr.strip()}"


needs_hosts = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@final
class Hosts:
    """So many hosts, h1 with address 10.98.0.1 and so on, until the end of the `with` block."""

    def __init__(self, count: int) -> None:
        self.names = [f"h{number}" for number in range(1, count + 1)]
        self._holders: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Hosts:
        self._hold("switch")
        self._inside("switch", "ip link add br0 type bridge && ip link set br0 up")
        for number, name in enumerate(self.names, 1):
            holder = self._hold(name)
            port = f"v{number}"
            self._inside(
                "switch",
                f"ip link add {port} type veth peer name eth0 netns {holder.pid} && "
                f"ip link set {port} master br0 up",
            )
            self._inside(
                name,
                f"ip link set lo up && ip addr add {self.address(name)}/24 dev eth0 && ip link set eth0 up",
            )
        self._wait_until_up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for holder in self._holders.values():
            holder.kill()
            holder.communicate()

    def address(self, name: str) -> str:
        """Return the address of a host."""
        return f"10.98.0.{self._number(name)}"

    def start(self, name: str, command: list[str], **variables: str) -> subprocess.Popen[str]:
        """Start a command on a host; its output is in `stdout`."""
        return subprocess.Popen(
            [*self._enter(name), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=clean_environment(**variables),
        )

    def cut(self, name: str) -> None:
        """Cut the link of a host, until it is restored."""
        self._inside("switch", f"ip link set v{self._number(name)} down")

    def restore(self, name: str) -> None:
        """Restore the link of a host, and let nobody remember that it could not be reached."""
        self._inside("switch", f"ip link set v{self._number(name)} up")
        for one in self.names:
            self._inside(one, "ip neigh flush dev eth0")

    def write_shell(self, path: Path) -> str:
        """Write a program that takes the place of ssh: host, then the words of a command for its shell."""
        cases = [
            f"{name} | {self.address(name)}) enter='{' '.join(self._enter(name))}' ;;" for name in self.names
        ]
        options = 'while [ "${1#-}" != "$1" ]; do shift; done'  # of ssh
        lines = [
            "#!/bin/sh",
            options,
            "host=$1",
            "shift",
            "case $host in",
            *cases,
            "esac",
            'exec $enter sh -c "$*"',
        ]
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o700)
        return str(path)

    def _number(self, name: str) -> int:
        return self.names.index(name) + 1

    def _wait_until_up(self) -> None:
        """Wait for carriers, which the kernel notices when it gets to it: seconds on a busy machine."""

        def until(condition: str) -> str:
            return f"i=0; until {condition}; do i=$((i + 1)); [ $i -lt 400 ] || exit 1; sleep 0.05; done"

        for number, name in enumerate(self.names, 1):
            self._inside("switch", until(f"bridge link show dev v{number} | grep -q 'state forwarding'"))
            self._inside(name, until("ip -o link show eth0 | grep -q 'state UP'"))

    def _hold(self, name: str) -> subprocess.Popen[str]:
        # Ends with its standard input, so also when this process is killed.
        holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "sh", "-c", f"hostname {name} && echo ready && exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        self._holders[name] = holder
        return holder

    def _enter(self, name: str) -> list[str]:
        return ["nsenter", "-t", str(self._holders[name].pid), "--net", "--uts"]

    def _inside(self, name: str, text: str) -> None:
        done = subprocess.run(
            [*self._enter(name), "sh", "-c", text],
            capture_output=True,
            text=True,
            timeout=_STEP_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def finish(processes: list[subprocess.Popen[str]], limit_seconds: float = LIMIT_SECONDS) -> list[Ended]:
    """Wait for the ends of commands; none is left running."""
    try:
        outputs = [process.communicate(timeout=limit_seconds)[0] for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return [Ended(process.returncode, output) for process, output in zip(processes, outputs, strict=True)]
