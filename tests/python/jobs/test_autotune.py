"""A training job that is tuned while it runs, and one that begins with what was found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from job import horovodrun, run, write_script

if TYPE_CHECKING:
    from pathlib import Path

TRAINING = """
    import sys, time
    from pathlib import Path
    import torch
    import horovod.torch as hvd

    hvd.init()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.05), named_parameters=model.named_parameters())
    data = torch.randn(256, 64)
    target = data.sum(1, keepdim=True) / 8
    end = time.monotonic() + 60
    profile = Path(sys.argv[1])
    first = loss = None
    for step in range(1_000_000):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), target)
        loss.backward()
        optimizer.step()
        first = first or loss.item()
        if step % 50 == 49:
            done = time.monotonic() > end or "Found by" in profile.read_text()
            if step >= int(sys.argv[2]) and hvd.broadcast_object(done, root_rank=0):
                break
    same = hvd.allgather(torch.cat([p.detach().flatten() for p in model.parameters()])[None])
    assert torch.equal(same[0], same[1]), "the ranks have different parameters"
    assert loss.item() < first / 2, (first, loss.item())
    print("trained", step, flush=True)
"""


def test_a_job_is_tuned_and_the_next_one_begins_with_what_was_found(tmp_path: Path) -> None:
    program = write_script(tmp_path, TRAINING)
    profile, log = tmp_path / "tuned.txt", tmp_path / "log.csv"
    profile.write_text("small_bytes=104\nspin_count=0\nchunk_bytes=16384\nyield_count=0\n")
    words = [
        *(horovodrun(), "-np", "2", "--autotune-profile", str(profile)),
        *("--autotune", "--autotune-log-file", str(log), "--autotune-steps-per-sample", "2"),
        *("--autotune-warmup-samples", "1", "--autotune-bayes-opt-max-samples", "6"),
    ]
    python = [sys.executable, program, str(profile)]

    tuned = run([*words, *python, "0"])

    assert tuned.code == 0, tuned.output
    assert tuned.output.count("trained") == 2
    assert "autotune: done after" in tuned.output
    rows = log.read_text().splitlines()
    assert rows[0].startswith("hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,")
    assert len({row.count(",") for row in rows}) == 1

    again = run([*words[:5], *python, "400"])

    assert again.code == 0, again.output
    assert "autotune" not in again.output
