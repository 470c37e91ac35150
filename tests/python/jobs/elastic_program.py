"""The training program of elastic jobs with PyTorch: counts every sample, ends with equal weights.

elastic_program.py FOLDER LENGTH EPOCHS LOADER_WORKERS [EVENT@STEP[/RANK] ...]

An event happens once, on that rank (modulo their number; without it, on the last one), at that step of the
whole job or later, and never to the last worker that is left. The training goes on until all have happened,
or a minute is over:
  kill, in-broadcast, in-commit, in-reset   the worker dies there
  stop                                      the worker is frozen
  hosts=TEXT                                the list of hosts becomes TEXT, with a line for each comma
  ask=TEXT                                  whoever reads the pipe FOLDER/asked is asked for TEXT
  leave                                     SIGTERM to itself
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

import horovod.torch as hvd

FOLDER, LENGTH, EPOCHS, LOADERS = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
EVENTS = [event.rsplit("@", 1) for event in sys.argv[5:]]
BATCH = 2
WAIT_SECONDS = 60  # for newcomers, which import PyTorch on a busy machine
STARTED = time.monotonic()


def die() -> None:
    """As a crash would."""
    os.kill(os.getpid(), signal.SIGKILL)


def ask(text: str) -> None:
    """Of the test; never waits."""
    pipe = os.open(FOLDER / "asked", os.O_WRONLY | os.O_NONBLOCK)
    os.write(pipe, f"{text}\n".encode())
    os.close(pipe)


class Numbers(Dataset):
    """Its samples are their own numbers."""

    def __len__(self) -> int:
        """The same on all ranks."""
        return LENGTH

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor]:
        """A number and an input."""
        return index, torch.full((4,), index / LENGTH)


def once(name: str) -> bool:
    """Whether nobody was here before."""
    try:
        (FOLDER / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def trace(event: str, when: str) -> str:
    """The name of the file that says that an event has happened."""
    return f"{event}-{when}".replace("/", "-")


def due(state, wanted: str) -> bool:
    """Whether an event happens now, to this worker."""
    is_harmless = wanted.startswith(("hosts=", "ask="))
    least = 1 if is_harmless else 3 if wanted == "leave" else 2
    if hvd.size() < least:
        return False
    for event, when in EVENTS:
        step, _, rank = when.partition("/")
        is_here = hvd.rank() == int(rank or hvd.size() - 1) % hvd.size()
        if event == wanted and is_here and state.step >= int(step) and once(trace(event, when)):
            return True
    return False


def is_more_to_come() -> bool:
    """Whether rank 0 waits for an event; a collective."""
    is_missing = any(not (FOLDER / trace(event, when)).exists() for event, when in EVENTS)
    return hvd.broadcast_object(is_missing and time.monotonic() - STARTED < WAIT_SECONDS, 0)


def happen(state) -> None:
    """What may happen between two steps."""
    for event, _ in EVENTS:
        if event == "kill" and due(state, event):
            die()
        if event == "stop" and due(state, event):
            os.kill(os.getpid(), signal.SIGSTOP)
        if event.startswith("ask=") and due(state, event):
            ask(event.removeprefix("ask="))
        if event == "leave" and due(state, event):
            os.kill(os.getpid(), signal.SIGTERM)
        if event.startswith("hosts=") and due(state, event):
            (FOLDER / "new").write_text(event.removeprefix("hosts=").replace(",", "\n") + "\n")
            (FOLDER / "new").rename(FOLDER / "hosts")
        if event == "in-broadcast" and due(state, event):
            hvd.broadcast_async_(torch.ones(1 << 18), 0, name="the last one")
            die()


class CountingState(hvd.elastic.TorchState):
    """Dies in a commit, or in a reset, if it has to."""

    def save(self) -> None:
        """The model is copied, and the rest is not."""
        if getattr(self, "step", 0) and due(self, "in-commit"):
            self._handlers["model"].save()
            die()
        super().save()

    def reset(self) -> None:
        """Of those that come back one does not."""
        if due(self, "in-reset"):
            die()
        super().reset()


def train(state) -> None:
    """Each sample of an epoch once, whatever happens."""
    while state.epoch < EPOCHS or is_more_to_come():
        workers = {"num_workers": LOADERS, "prefetch_factor": 2} if LOADERS else {}
        for numbers, inputs in DataLoader(Numbers(), BATCH, sampler=state.sampler, **workers):
            optimizer.zero_grad()
            (model(inputs) - inputs.sum(1, keepdim=True)).square().mean().backward()
            optimizer.step()
            state.seen = (*state.seen, *hvd.allgather(numbers, name="seen").tolist())
            state.step += 1
            state.sampler.record_batch(0, len(numbers))
            state.commit()
            happen(state)
        repeated = len(state.seen) - LENGTH
        assert set(state.seen) == set(range(LENGTH)), sorted(state.seen)
        # What does not fill all ranks is repeated at the end of an epoch, and nothing else.
        assert 0 <= repeated < hvd.size(), (repeated, hvd.size())
        state.seen = ()
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)


hvd.init()
torch.manual_seed(hvd.rank())
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), 0.01, momentum=0.9), named_parameters=model.named_parameters()
)
sampler = hvd.elastic.ElasticSampler(Numbers())
whole = CountingState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, step=0, seen=())
hvd.elastic.run(train)(whole)
weights = hvd.allgather(model.weight.detach().reshape(1, -1), name="weights")
assert torch.equal(weights, weights[:1].expand_as(weights)), weights
print("done: rank", hvd.rank(), "of", hvd.size(), "step", whole.step, flush=True)
