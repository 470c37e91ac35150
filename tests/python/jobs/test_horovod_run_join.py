"""horovod.run without ssh: every host calls it, one of them launches, the others join it."""

from __future__ import annotations

import sys
from pathlib import Path

from hosts import Hosts, finish, needs_hosts
from job import write_key, write_script

LIMIT_SECONDS = 120

# The function is of the program that launched, and is sent to the others.
PROGRAM = """
import os, sys, horovod
place, key, text = sys.argv[1:]
def where():
    from horovod._core.basics import basics as hvd
    from horovod._core.objects import allgather_object
    hvd.init()
    names = allgather_object(os.uname().nodename)
    hvd.shutdown()
    return text, names
print("results:", horovod.run(where, num_proc=2, max_num_proc=2, join=place, key_file=key), flush=True)
"""


@needs_hosts
def test_the_host_of_that_name_launches_and_the_other_one_joins(tmp_path: Path) -> None:
    script = write_script(tmp_path, PROGRAM)
    key = write_key(tmp_path / "key")

    with Hosts(2) as hosts:
        place = f"{hosts.address('h1')}:4711"  # of a network that nobody else is in
        jobs = [hosts.start(name, [sys.executable, script, place, key, name]) for name in hosts.names]
        launched, joined = finish(jobs, LIMIT_SECONDS)

    assert launched.code == 0, launched.output + joined.output
    assert "results: [('h1', ['h1', 'h2']), ('h1', ['h1', 'h2'])]" in launched.output
    assert joined.code == 0, joined.output
    assert "results: []" in joined.output
