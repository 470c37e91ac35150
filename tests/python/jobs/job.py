"""Starting a real job from a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

LIMIT_SECONDS = 180

# Variables of an outer job must not reach the inner one.
FOREIGN = (
    "HOROVOD_",
    "JOB_COMPLETION_INDEX",
    "MPI_LOCAL",
    "SM_",
    "OMPI_",
    "PMI_",
    "PMIX_",
    "SLURM_",
    "TORCHELASTIC_",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_",
    "GROUP_",
    "MASTER_",
)


@dataclass(frozen=True)
class Ended:
    """How a job ended, and what it printed."""

    code: int
    output: str


def clean_environment(**variables: str) -> dict[str, str]:
    """Return the environment of a process that belongs to no job."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    return {**kept, "OMP_NUM_THREADS": "1", **variables}


def horovodrun() -> str:
    """Return the launcher that was installed with this Python."""
    return str(Path(sys.executable).with_name("horovodrun"))


def write_script(folder: Path, text: str) -> str:
    """Store a program that the test shows as text."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    return str(path)


def write_key(path: Path) -> str:
    """Store a key as HOROVOD_KEY_FILE names it."""
    path.touch(mode=0o600)
    path.write_bytes(os.urandom(32))
    return str(path)


def run(command: list[str], limit_seconds: float = LIMIT_SECONDS, **variables: str) -> Ended:
    """Run a command to its end; a command that does not end fails the test."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=limit_seconds,
        env=clean_environment(**variables),
        check=False,
    )
    return Ended(done.returncode, done.stdout)


def run_job(
    folder: Path, size: int, text: str, limit_seconds: float = LIMIT_SECONDS, **variables: str
) -> Ended:
    """Run a program with horovodrun."""
    script = write_script(folder, text)
    return run([horovodrun(), "-np", str(size), sys.executable, script], limit_seconds, **variables)


# Runs programs one after the other in the same processes: a framework is imported once.
SEVERAL = """
import json, os, runpy, sys
from horovod._core.basics import basics
for program, arguments in json.loads(sys.argv[1]):
    sys.argv = [program, *arguments]
    sys.path.insert(0, os.path.dirname(program))
    runpy.run_path(program, run_name="__main__")
    sys.path.pop(0)
    basics.shutdown()
    print("ended:", os.path.basename(program), flush=True)
"""


def run_several(
    size: int, programs: list[tuple[Path, list[str]]], limit_seconds: float = LIMIT_SECONDS, **variables: str
) -> Ended:
    """Run programs in one job, each of which begins with hvd.init(); ranks print "ended: NAME" after each."""
    listed = json.dumps([(str(program), arguments) for program, arguments in programs])
    command = [horovodrun(), "-np", str(size), sys.executable, "-c", SEVERAL, listed]
    return run(command, limit_seconds, **variables)


ELASTIC_EXAMPLES = Path(__file__).resolve().parents[3] / "examples/elastic"


def run_elastic_example(folder: Path, name: str, *arguments: str, **variables: str) -> Ended:
    """Run an example of elastic training as its text says, with two workers on the hosts of its script."""
    hosts = folder / "hosts.txt"
    hosts.write_text("localhost:2\n")
    launch = [horovodrun(), "-np", "2", "--min-np", "1", "--max-np", "4"]
    launch += ["--host-discovery-script", str(ELASTIC_EXAMPLES / "hosts.sh")]
    command = [*launch, sys.executable, str(ELASTIC_EXAMPLES / f"{name}.py"), *arguments]
    return run(command, 300, HOSTS_FILE=str(hosts), **variables)
