"""Random schedules of faults for elastic jobs: made from a seed, carried out on one host or on several."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from hosts import Hosts, finish
from job import Ended, horovodrun, run, write_key

PROGRAM: Final = str(Path(__file__).with_name("elastic_program.py"))
LIMIT_SECONDS: Final = 300  # what takes longer hangs
LEAST, MOST = 2, 6
HOSTS: Final = ("h1", "h2", "h3")
OPTIONS: Final = ("--min-np", "1", "--blacklist-cooldown-range", "1", "1", "--elastic-timeout", "60")
PORT: Final = 4711  # of a network that nobody else is in
# A frozen worker costs seconds, not a minute; a host behind a cut link is given up within the longest cut.
VARIABLES: Final = {
    "HOROVOD_FROZEN_PEER_TIME_SECONDS": "5",
    "HOROVOD_ELASTIC_READY_SECONDS": "15",
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "8",
}


@dataclass(frozen=True)
class Schedule:
    """What happens to one job; every choice comes from the seed."""

    seed: int
    where: str  # "one" host, hosts behind "ssh", hosts that "join"
    slots: tuple[int, ...]  # of each host at the start
    loaders: int
    events: tuple[str, ...]
    chaos: tuple[str, ...]

    @property
    def size(self) -> int:
        """The ranks at the start."""
        return sum(self.slots)

    @property
    def has_cut(self) -> bool:
        """Whether a host may lose the others."""
        return any(event.startswith("ask=cut") for event in self.events)


def make_schedule(seed: int, *, has_hosts: bool) -> Schedule:
    """Return the schedule of a seed: kill, stop, add, remove and cut, at random steps of random ranks."""
    source = random.Random(seed)
    where = source.choice(("one", "one", "ssh", "join"))
    where = where if has_hosts else "one"
    size = source.randint(LEAST, MOST)
    slots = (size,) if where == "one" else _deal(source, size)
    events = []
    for _ in range(source.randint(1, 4)):
        event = source.choice([_death(source), _death(source), "stop", _change(source, where)])
        events.append(f"{event}@{source.randint(1, 30)}/{source.randint(0, MOST - 1)}")
    chaos = ("--chaos", f"kill={source.uniform(3, 8):.1f},seed={seed}") if source.random() < 0.5 else ()
    return Schedule(seed, where, slots, source.randint(0, 1), tuple(events), chaos)


def _deal(source: random.Random, size: int) -> tuple[int, ...]:
    """So many slots on two or three hosts, or on as many as have one."""
    slots = [1] * min(source.randint(2, 3), size)
    for _ in range(size - len(slots)):
        slots[source.randrange(len(slots))] += 1
    return tuple(slots)


def _death(source: random.Random) -> str:
    return source.choice(("kill", "leave", "in-broadcast", "in-commit", "in-reset"))


def _change(source: random.Random, where: str) -> str:
    """What happens to the hosts."""
    if where == "one":
        return f"hosts=localhost:{source.randint(LEAST, MOST)}"
    if source.random() < 0.5:
        return f"ask=cut {source.choice(HOSTS)} {source.randint(1, 10)}"
    if where == "join":
        return f"ask={source.choice(('add', 'remove'))} {source.choice(HOSTS[1:])}"
    others = [f"{name}:{source.randint(1, 2)}" for name in HOSTS[1:] if source.random() < 0.6]
    return "hosts=" + ",".join([f"h1:{source.randint(1, 2)}", *others])


def run_schedule(folder: Path, schedule: Schedule) -> list[Ended]:
    """Run a job; how it ended on the host that launched it, then on those that joined it."""
    if schedule.where == "one":
        (folder / "hosts").write_text(f"localhost:{schedule.size}\n")
        command = _with_own_memory(folder, "one", _discovering(folder, schedule))
        return [run(command, LIMIT_SECONDS, **VARIABLES)]
    with Hosts(len(HOSTS)) as hosts, _Stage(folder, schedule, hosts) as stage:
        return stage.play()


def _discovering(folder: Path, schedule: Schedule) -> list[str]:
    options = [*OPTIONS, *schedule.chaos, "--host-discovery-script", f"cat {folder}/hosts"]
    return [horovodrun(), "-np", str(schedule.size), *options, *_program(folder, schedule)]


def _program(folder: Path, schedule: Schedule) -> list[str]:
    numbers = (60 * schedule.size, 2, schedule.loaders)
    return [sys.executable, PROGRAM, str(folder), *map(str, numbers), *schedule.events]


def _with_own_memory(folder: Path, name: str, command: list[str]) -> list[str]:
    """Give a command a /dev/shm of its own where that is permitted, and write down what it leaves there."""
    if os.geteuid() != 0:
        return command
    # Who is told to leave is the command, not this shell.
    script = (
        'mount -t tmpfs none /dev/shm || exit 1; "$@" & child=$!; trap "kill -TERM $child" TERM; '
        "wait $child; code=$?; while kill -0 $child 2>/dev/null; do wait $child; code=$?; done; "
        'ls -A /dev/shm > "$0"; exit $code'
    )
    return ["unshare", "--mount", "sh", "-c", script, str(folder / f"shm.{name}"), *command]


@final
class _Stage:
    """Hosts, the processes on them, and a thread that carries out what workers ask for."""

    def __init__(self, folder: Path, schedule: Schedule, hosts: Hosts) -> None:
        self._folder, self._schedule, self._hosts = folder, schedule, hosts
        self._joined: list[tuple[str, subprocess.Popen[str]]] = []
        self._thread = threading.Thread(target=self._carry_out)

    def __enter__(self) -> _Stage:
        os.mkfifo(self._folder / "asked")
        # Both ends: neither we nor a worker wait for somebody at the other one.
        self._pipe = os.open(self._folder / "asked", os.O_RDWR)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._pipe, b"end\n")
        self._thread.join()
        os.close(self._pipe)
        for _name, process in self._joined:
            process.kill()
            process.communicate()

    def play(self) -> list[Ended]:
        """Run the job to its end."""
        names = HOSTS[: len(self._schedule.slots)]
        if self._schedule.where == "ssh":
            lines = [f"{name}:{slots}" for name, slots in zip(names, self._schedule.slots, strict=True)]
            (self._folder / "hosts").write_text("\n".join(lines) + "\n")
            shell = self._hosts.write_shell(self._folder / "ssh")
            command = _discovering(self._folder, self._schedule)
            return finish([self._start("h1", command, HOROVOD_SSH_COMMAND=shell)], LIMIT_SECONDS)
        write_key(self._folder / "key")
        launched = self._start("h1", self._joining(self._schedule.slots[0]))
        for name, slots in zip(names[1:], self._schedule.slots[1:], strict=True):
            self._joined.append((name, self._start(name, self._joining(slots))))
        ended = finish([launched], LIMIT_SECONDS)
        return [*ended, *finish([process for _name, process in self._joined], LIMIT_SECONDS)]

    def _joining(self, slots: int) -> list[str]:
        options = [*OPTIONS, "--join", f"{self._hosts.address('h1')}:{PORT}"]
        options += ["--key-file", str(self._folder / "key"), "--slots-per-host", str(slots)]
        command = [horovodrun(), "-np", str(self._schedule.size), *options, *self._schedule.chaos]
        return [*command, *_program(self._folder, self._schedule)]

    def _start(self, name: str, command: list[str], **more: str) -> subprocess.Popen[str]:
        return self._hosts.start(name, _with_own_memory(self._folder, name, command), **VARIABLES, **more)

    def _carry_out(self) -> None:
        asked = os.fdopen(os.dup(self._pipe))
        with asked:
            for line in asked:
                what, *words = line.split()
                if what == "end":
                    return
                self._do(what, words)

    def _do(self, what: str, words: list[str]) -> None:
        name = words[0]
        present = [process for one, process in self._joined if one == name and process.poll() is None]
        if what == "cut":
            self._hosts.cut(name)
            threading.Event().wait(float(words[1]))  # as long as the cut lasts
            self._hosts.restore(name)
        elif what == "add" and not present:
            self._joined.append((name, self._start(name, self._joining(1))))
        elif what == "remove":
            for process in present:
                process.terminate()
