"""torch.distributed on the backend "horovod" under other launchers, and checkpoints of other sizes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from job import Ended, horovodrun, run, run_job, write_script
from packages import need

PARALLEL = Path(__file__).parents[1] / "parallel"

TRAIN = """
import os
import torch
import torch.distributed as dist
import horovod.torch as hvd
dist.init_process_group("horovod")
assert (dist.get_rank(), dist.get_world_size()) == (hvd.rank(), hvd.size())
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
model(torch.full((1, 3), float(dist.get_rank()))).sum().backward()
total = sum(range(dist.get_world_size())) / dist.get_world_size()
assert model.module.weight.grad.tolist() == [[total] * 3]
dist.barrier()
dist.destroy_process_group()
os.write(1, f"done {hvd.rank()} of {hvd.size()}\\n".encode())  # one piece, whoever writes meanwhile
"""


def assert_all_done(ended: Ended, size: int) -> None:
    for rank in range(size):
        assert f"done {rank} of {size}" in ended.output, ended.output
    assert ended.code == 0, ended.output


def test_torchrun(tmp_path: Path) -> None:
    script = write_script(tmp_path, TRAIN)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]

    ended = run([*torchrun, "--standalone", script])

    assert_all_done(ended, 2)


@pytest.mark.parametrize("level", ["INFO", "DETAIL"])
def test_debug_levels_of_torch(tmp_path: Path, level: str) -> None:
    ended = run_job(tmp_path, 2, TRAIN, TORCH_DISTRIBUTED_DEBUG=level)

    assert_all_done(ended, 2)


@pytest.mark.parametrize("method", ["file", "env"])
def test_processes_that_no_launcher_has_started(tmp_path: Path, method: str) -> None:
    program = f"""
    import os, socket
    import torch, torch.distributed as dist, torch.multiprocessing as mp

    def work(rank, port):
        import horovod.torch as hvd
        if {method!r} == "env":
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            dist.init_process_group("horovod", rank=rank, world_size=2)
        else:
            dist.init_process_group("horovod", init_method="file://{tmp_path}/meet", rank=rank, world_size=2)
        group = dist.new_group([1, 0])
        tensor = torch.tensor([rank + 1.0])
        dist.all_reduce(tensor, group=group)
        assert tensor.item() == 3.0, tensor
        dist.destroy_process_group()
        os.write(1, f"done {{hvd.rank()}} of {{hvd.size()}}\\n".encode())

    if __name__ == "__main__":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        mp.spawn(work, args=(port,), nprocs=2)
    """
    script = write_script(tmp_path, program)

    ended = run([sys.executable, script])

    assert_all_done(ended, 2)


def test_a_rank_that_is_not_that_of_the_job_is_refused(tmp_path: Path) -> None:
    program = f"""
    import torch.distributed as dist
    import horovod.torch as hvd
    hvd.init()
    try:
        place = {{"rank": 1 - hvd.rank(), "world_size": 2}}
        dist.init_process_group("horovod", init_method="file://{tmp_path}/meet", **place)
    except ValueError as error:
        print("refused:", error)
    hvd.barrier()
    """

    ended = run_job(tmp_path, 2, program)

    assert "refused: init_process_group: torch says rank 1 of 2, the running job says rank 0" in ended.output
    assert ended.code == 0


def test_no_import_of_horovod_is_needed(tmp_path: Path) -> None:
    program = """
    import torch.distributed as dist
    dist.init_process_group("horovod", init_method="horovod://")
    print(f"done {dist.get_rank()} of {dist.get_world_size()}")
    """

    ended = run_job(tmp_path, 2, program)

    assert_all_done(ended, 2)


SHARDED = f"""
import sys
sys.path.insert(0, {str(PARALLEL)!r})
import torch
import horovod.torch as hvd
from torch_models import ROWS_PER_RANK, batch, loss_of, make_model
hvd.init()
torch.set_num_threads(1)
path, first, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
model = make_model()
optimizer = hvd.ShardedOptimizer(torch.optim.AdamW(model.parameters(), lr=0.01))
if first:
    saved = torch.load(path, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
for step in range(first, first + steps):
    data, target = batch(step, 6)  # 24 rows: the same whole batch with 1, 2 and 3 ranks
    rows = slice(hvd.rank() * len(data) // hvd.size(), (hvd.rank() + 1) * len(data) // hvd.size())
    optimizer.zero_grad()
    loss_of(model, data[rows], target[rows]).backward()
    optimizer.step()
optimizer.consolidate_state_dict(to=0)
if hvd.rank() == 0:
    torch.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict()}}, path)
hvd.barrier()
"""


def test_a_sharded_checkpoint_loads_with_another_number_of_ranks(tmp_path: Path) -> None:
    torch = need("torch", "python")
    script = write_script(tmp_path, SHARDED)

    def train(size: int, path: Path, first: int, steps: int) -> None:
        arguments = [sys.executable, script, str(path), str(first), str(steps)]
        ended = run([horovodrun(), "-np", str(size), *arguments])
        assert ended.code == 0, ended.output

    travelled, alone = tmp_path / "travelled.pt", tmp_path / "alone.pt"
    train(2, travelled, 0, 2)
    train(3, travelled, 2, 2)
    train(1, travelled, 4, 2)
    train(1, alone, 0, 6)

    one, other = (torch.load(path, weights_only=True) for path in (travelled, alone))
    for name, value in other["model"].items():
        torch.testing.assert_close(one["model"][name], value, rtol=1e-4, atol=1e-6)
    for number, state in other["optimizer"]["state"].items():
        for key, value in state.items():
            torch.testing.assert_close(one["optimizer"]["state"][number][key], value, rtol=1e-4, atol=1e-7)
