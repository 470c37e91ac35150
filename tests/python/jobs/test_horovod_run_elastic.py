"""horovod.run of an elastic job: a worker dies, the others go on in their processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from job import run, write_script

LIMIT_SECONDS = 300  # importing PyTorch on a busy machine takes its time

PROGRAM = """
import json, os, signal, sys
from pathlib import Path
import horovod

def train(mark):
    import torch
    import horovod.torch as hvd
    hvd.init()

    @hvd.elastic.run
    def loop(state):
        while state.step < 5:
            assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()
            state.step += 1
            state.commit()
            if state.step == 3 and hvd.rank() == 1 and not Path(mark).exists():
                Path(mark).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return hvd.rank(), hvd.size(), state.step

    return loop(hvd.elastic.TorchState(step=0))

mark, options = sys.argv[1:]
print("results:", horovod.run(train, (mark,), **json.loads(options)))
"""


@pytest.mark.parametrize(
    "options",
    [
        '{"num_proc": 3, "min_num_proc": 2, "cooldown_range": [600, 600]}',
        (
            '{"num_proc": 2, "min_num_proc": 2, "host_discovery_script": "echo localhost:2",'
            ' "cooldown_range": [1, 1]}'
        ),
    ],
    ids=["a slot less", "a new worker in the slot"],
)
def test_results_are_those_of_the_last_world(tmp_path: Path, options: str) -> None:
    job = run(
        [sys.executable, write_script(tmp_path, PROGRAM), str(tmp_path / "mark"), options], LIMIT_SECONDS
    )

    assert job.code == 0, job.output
    assert "killed by signal 9" in job.output
    assert "results: [(0, 2, 5), (1, 2, 5)]" in job.output


def test_one_reset_more_than_allowed_is_an_error_with_its_reason(tmp_path: Path) -> None:
    options = '{"num_proc": 2, "min_num_proc": 1, "reset_limit": 0}'

    job = run(
        [sys.executable, write_script(tmp_path, PROGRAM), str(tmp_path / "mark"), options], LIMIT_SECONDS
    )

    assert job.code == 1, job.output
    assert "RuntimeError" in job.output
    assert "exceeded limit: 0" in job.output
