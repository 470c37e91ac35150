"""TorchState and the loop around training, with resets in which every rank stays."""

from __future__ import annotations

import copy
import random

import pytest
import torch
from torch import nn

import horovod.torch as hvd
from horovod._core.elastic import news
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.torch.elastic import ElasticSampler, TorchState
from horovod.torch.elastic.state import StateHandler, get_handler_registry, set_handler_registry


def make_model(value: float) -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)
    return model


def weights_of(model: nn.Module) -> list[float]:
    return [round(float(p.detach().float().mean()), 5) for p in model.parameters()]


def assert_equal_on_all_ranks(value: object) -> None:
    everybody = hvd.allgather_object(value)
    assert all(one == everybody[0] for one in everybody), everybody


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    optimizer.zero_grad()
    model(torch.randn(4, 2, generator=generator)).square().sum().backward()
    optimizer.step()


def test_sync_takes_rank_zero_at_first_and_restore_leads_back_there(rank):
    model = make_model(1.0 + rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 + rank)
    state = TorchState(model=model, optimizer=optimizer, batch=20 + rank, epoch=10 + rank)

    state.sync()

    assert weights_of(model) == [1.0] * 4
    assert (state.batch, state.epoch) == (20, 10)
    assert optimizer.param_groups[0]["lr"] == 0.1
    model.load_state_dict(make_model(7.0).state_dict())
    state.batch = 21
    state.restore()
    assert weights_of(model) == [1.0] * 4
    assert state.batch == 20

    model.load_state_dict(make_model(7.0).state_dict())
    state.batch = 21
    state.commit()
    model.load_state_dict(make_model(8.0).state_dict())
    state.restore()

    assert weights_of(model) == [7.0] * 4
    assert state.batch == 21


@pytest.mark.disagreement
def test_the_newest_commit_is_taken_wherever_it_is(rank, size):
    state = TorchState(model=make_model(1.0), step=1)
    state.sync()
    if rank == size - 1:
        state.model.load_state_dict(make_model(5.0).state_dict())
        state.step = 5
        state.save()

    state.sync()

    assert weights_of(state.model) == [5.0] * 4
    assert state.step == 5


@pytest.mark.disagreement
def test_a_newcomer_is_never_taken(rank):
    state = TorchState(model=make_model(1.0), step=1)
    state.sync()
    state.model.load_state_dict(make_model(2.0).state_dict())
    state.step = 2
    state.commit()
    if rank == 0:
        state = TorchState(model=make_model(9.0), step=9)
        for _ in range(5):
            state.save()

    state.sync()

    assert weights_of(state.model) == [2.0] * 4
    assert state.step == 2


def test_what_failed_since_the_last_commit_is_done_again():
    model = make_model(1.0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    state = TorchState(model=model, optimizer=optimizer, scheduler=scheduler, step=0)
    failures = [2, 2, 4]

    @hvd.elastic.run
    def train(state):
        while state.step < 5:
            train_step(state.model, state.optimizer, state.step)
            scheduler.step()
            if failures and failures[0] == state.step:
                failures.pop(0)
                # Gradients are under way: the reset must forget them.
                state.model(torch.ones(2, 2)).sum().backward()
                raise HorovodInternalError
            state.step += 1
            state.commit()
        return weights_of(state.model)

    found = train(state)

    plain = make_model(1.0)
    reference = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    decay = torch.optim.lr_scheduler.StepLR(reference, 1, gamma=0.5)
    for step in range(5):
        train_step(plain, reference, step)
        decay.step()
    assert found == pytest.approx(weights_of(plain), rel=1e-4)
    assert scheduler.last_epoch == 5
    assert optimizer.param_groups[0]["lr"] == pytest.approx(reference.param_groups[0]["lr"])
    assert_equal_on_all_ranks(found)


def test_a_commit_allocates_nothing_after_the_first():
    model = make_model(1.0)
    optimizer = torch.optim.Adam(model.parameters())
    state = TorchState(model=model, optimizer=optimizer)
    train_step(model, optimizer, 0)
    state.save()

    def addresses(value):
        if isinstance(value, torch.Tensor):
            return [value.data_ptr()]
        if isinstance(value, (dict, list)):
            items = value.values() if isinstance(value, dict) else value
            return [address for item in items for address in addresses(item)]
        return []

    before = [addresses(handler._snapshot.state) for handler in state._handlers.values()]
    train_step(model, optimizer, 1)
    state.save()

    assert [addresses(handler._snapshot.state) for handler in state._handlers.values()] == before
    expected = copy.deepcopy(model.state_dict())
    train_step(model, optimizer, 2)
    state.restore()
    assert all(torch.equal(mine, expected[name]) for name, mine in model.state_dict().items())


@pytest.mark.disagreement
def test_whoever_is_asked_to_leave_interrupts_all_at_the_same_step(rank, size, monkeypatch):
    state = TorchState(model=make_model(1.0), step=0)
    state.sync()
    asked = rank == size - 1
    monkeypatch.setattr(news, "look", lambda: news.News(is_asked_to_leave=asked and state.step == 3))

    def go_on_until_interrupted():
        while True:
            state.step += 1
            state.check_host_updates()

    with pytest.raises(HostsUpdatedInterrupt) as raised:
        go_on_until_interrupted()

    assert raised.value.skip_sync
    assert state.step == 3
    # It was no commit, and yet nothing is lost.
    state.restore()
    assert state.step == 3


@pytest.mark.disagreement
def test_changes_of_hosts_that_rank_zero_has_heard_of_interrupt_all(rank, monkeypatch):
    state = TorchState(step=0)
    heard = news.News(timestamp=5 if rank == 0 else 0, changes=2)
    monkeypatch.setattr(news, "look", lambda: heard)

    with pytest.raises(HostsUpdatedInterrupt) as raised:
        state.commit()

    assert not raised.value.skip_sync
    state.commit()  # once


@pytest.mark.disagreement
def test_process_sets_exist_again_after_a_reset(size):
    outer = hvd.add_process_set([0, size - 1] if size > 2 else [0])
    inner = []
    state = TorchState(step=0)

    @hvd.elastic.run
    def train(state):
        inner.append(hvd.add_process_set([size - 1]))
        results = []
        if outer.included():
            results = [float(hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=outer))]
        state.step += 1
        if state.step == 1:
            state.save()
            raise HorovodInternalError
        return results

    results = train(state)

    assert results == ([float(len(outer.ranks))] if outer.included() else [])
    assert inner[0].process_set_id is None
    hvd.remove_process_set(inner[1])
    assert hvd.remove_process_set(outer)


def test_names_that_nobody_gave_agree_after_a_reset():
    state = TorchState(step=0)

    @hvd.elastic.run
    def train(state):
        # Ranks have issued different numbers of unnamed operations before they meet again.
        if state.step == 0:
            if hvd.rank() == 0:
                hvd.allreduce_async(torch.ones(2))
            state.step = 1
            state.save()
            raise HorovodInternalError
        return float(hvd.allreduce(torch.ones(2), op=hvd.Sum)[0])

    assert train(state) == hvd.size()


def test_values_of_other_types_have_handlers_of_the_program():
    class Counter:
        value = 0

    class CounterHandler(StateHandler):
        def save(self):
            self.saved = self.value.value

        def restore(self):
            self.value.value = self.saved

        def sync(self):
            self.value.value = hvd.broadcast_object(self.value.value, self.root_rank, name="counter")

    before = get_handler_registry()
    set_handler_registry([*before, (Counter, CounterHandler)])
    try:
        state = TorchState(counter=Counter())
    finally:
        set_handler_registry(before)
    state.counter.value = hvd.rank() + 3
    state.sync()
    assert state.counter.value == 3
    state.counter.value = 4
    state.restore()
    assert state.counter.value == 3


def test_assigning_a_model_saves_it():
    state = TorchState(model=make_model(1.0))

    state.model = make_model(2.0)
    state.model.load_state_dict(make_model(3.0).state_dict())
    state.restore()

    assert weights_of(state.model) == [2.0] * 4


# ---- every sample once


@pytest.mark.parametrize("workers", [0, 2])
def test_every_sample_counts_once_over_resets(workers, rank, size):
    length, batch_size, epochs = 24 * size, 3, 2
    sampler = ElasticSampler(range(length), seed=3)
    state = TorchState(sampler=sampler, epoch=0, batch=0, seen=())
    source = random.Random(11)
    lost = []

    @hvd.elastic.run
    def train(state):
        loader = torch.utils.data.DataLoader(
            list(range(length)), batch_size=batch_size, sampler=state.sampler, num_workers=workers
        )
        while state.epoch < epochs:
            for batch in loader:
                state.seen = (*state.seen, *((state.epoch, int(index)) for index in batch))
                state.sampler.record_batch(0, len(batch))
                if source.random() < 0.15:
                    lost.append(batch)
                    raise HorovodInternalError
                if source.random() < 0.7:
                    state.commit()
            state.epoch += 1
            state.sampler.set_epoch(state.epoch)
            state.commit()
        return state.seen

    # What a rank has processed is its own; a sync would give all ranks that of rank 0.
    mine = {}
    original = state._take_objects
    state._take_objects = lambda received: original({**received, "seen": state._saved_state["seen"]})

    seen = train(state)
    mine = hvd.allgather_object(seen)

    assert lost
    counted = sorted(entry for one in mine for entry in one)
    assert counted == [(epoch, index) for epoch in range(epochs) for index in range(length)]


# ---- sharded optimizers


def make_sharded(seed: int):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2))
    return model, hvd.ShardedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01))


def sharded_step(model, optimizer, step):
    generator = torch.Generator().manual_seed(step)
    optimizer.zero_grad()
    model(torch.randn(4, 5, generator=generator)).square().sum().backward()
    optimizer.step()


@pytest.mark.disagreement
@pytest.mark.parametrize("newcomer", [0, 1])
def test_the_shards_of_a_rank_that_is_gone_live_on(newcomer, rank, size):
    def fresh(seed):
        model, optimizer = make_sharded(seed)
        return TorchState(model=model, optimizer=optimizer, step=0)

    state = fresh(1)
    state.sync()
    for _ in range(3):
        sharded_step(state.model, state.optimizer, state.step)
        state.step += 1
        state.commit()
    sharded_step(state.model, state.optimizer, 99)  # not committed
    if rank == newcomer:
        state = fresh(2)
    else:
        state.restore()
    hvd.shutdown()
    hvd.init()
    state.on_reset()
    state.sync()

    assert state.step == 3
    for _ in range(2):
        sharded_step(state.model, state.optimizer, state.step)
        state.step += 1

    torch.manual_seed(1)
    plain = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2))
    reference = torch.optim.Adam(plain.parameters(), lr=0.01)
    for step in range(5):
        sharded_step(plain, reference, step)
    for mine, expected in zip(state.model.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(mine, expected, rtol=1e-4, atol=1e-6)


def test_a_sharded_training_goes_on_after_failures():
    model, optimizer = make_sharded(4)
    state = TorchState(model=model, optimizer=optimizer, step=0)
    failures = [1, 3]

    @hvd.elastic.run
    def train(state):
        while state.step < 5:
            sharded_step(state.model, state.optimizer, state.step)
            if failures and failures[0] == state.step:
                failures.pop(0)
                raise HorovodInternalError
            state.step += 1
            state.commit()

    train(state)

    torch.manual_seed(4)
    plain = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2))
    reference = torch.optim.Adam(plain.parameters(), lr=0.01)
    for step in range(5):
        sharded_step(plain, reference, step)
    for mine, expected in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(mine, expected, rtol=1e-4, atol=1e-6)
