"""A small elastic training for jobs of cluster engines, and what can be read off its results."""

import os
import time

SECONDS = 300


def train(is_done, before_step=None, log=None, pause=0.05):
    """Fit one weight until `is_done(state)`; pid, steps of this process, the sizes of all steps."""
    import torch

    import horovod.torch as hvd

    print(f"hello from worker {os.environ['HOROVOD_RANK']}", flush=True)
    hvd.init()
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    own_steps = []

    @hvd.elastic.run
    def loop(state):
        end = time.monotonic() + SECONDS
        while not is_done(state) and time.monotonic() < end:
            if before_step is not None:
                before_step(state, hvd.rank())
            optimizer.zero_grad()
            (model(torch.ones(4, 1)) - 2.0).pow(2).mean().backward()
            optimizer.step()
            own_steps.append(state.step)
            state.sizes = (*state.sizes, hvd.size())
            state.step += 1
            if log is not None and hvd.rank() == 0:
                log({"step": state.step, "size": hvd.size()})
            time.sleep(pause)
            state.commit()

    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0, sizes=())
    loop(state)
    return {
        "pid": os.getpid(),
        "rank": hvd.rank(),
        "own_steps": own_steps,
        "sizes": state.sizes,
        "weight": model.weight.item(),
    }


def changes_of(sizes):
    """The sizes one after the other, each once."""
    return [size for at, size in enumerate(sizes) if at == 0 or sizes[at - 1] != size]
