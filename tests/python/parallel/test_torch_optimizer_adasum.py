"""DistributedOptimizer with Adasum: the ranks' changes are combined, for any number of ranks."""

from __future__ import annotations

import pytest
import torch
import training_cases as cases
from torch import nn

import horovod.torch as hvd

pytestmark = pytest.mark.disagreement


def test_equal_changes_are_kept_as_they_are() -> None:
    batch = cases.share(cases.make_batches(1)[0], rank=0)
    model, expected = cases.make_model(), cases.make_model()
    optimizer = hvd.DistributedOptimizer(
        cases.sgd(model.parameters()), model.named_parameters(), op=hvd.Adasum
    )

    cases.train(model, optimizer, [batch] * 3)
    cases.train(expected, cases.sgd(expected.parameters()), [batch] * 3)

    assert type(optimizer).__name__ == "SGD"
    cases.assert_same_parameters(model, expected)


def test_orthogonal_changes_are_added(rank: int, size: int) -> None:
    parameter = nn.Parameter(torch.zeros(size))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), op=hvd.Adasum)

    parameter[rank].backward()
    optimizer.step()

    torch.testing.assert_close(parameter.detach(), torch.full((size,), -1.0))


@pytest.mark.parametrize("compression", [hvd.Compression.none, hvd.Compression.fp16])
def test_ranks_stay_equal(compression: type) -> None:
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.01), op=hvd.Adasum, compression=compression
    )
    before = cases.loss_of(model, cases.make_batches(1)[0]).item()

    cases.train(model, optimizer, [cases.share(batch) for batch in cases.make_batches(1) * 10])

    cases.assert_equal_on_all_ranks(model)
    assert cases.loss_of(model, cases.make_batches(1)[0]).item() < before


def test_passes_are_counted_and_the_closure_is_called() -> None:
    batches = [cases.share(batch) for batch in cases.make_batches(2)]
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(
        cases.sgd(model.parameters()), op=hvd.Adasum, backward_passes_per_step=2
    )

    def closure() -> torch.Tensor:
        for batch in batches:
            cases.loss_of(model, batch).backward()
        return torch.tensor(3.0)

    assert optimizer.step(closure) == 3.0
    optimizer.zero_grad()
    closure()
    with pytest.raises(AssertionError, match="backward_passes_per_step"):
        cases.loss_of(model, batches[0]).backward()
    with pytest.raises(AssertionError, match="race condition"):
        optimizer.zero_grad()
    optimizer.step()
    cases.assert_equal_on_all_ranks(model)


def test_refuses_what_makes_no_sense_with_adasum(process_set: hvd.ProcessSet, size: int) -> None:
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()), op=hvd.Adasum)

    optimizer.synchronize()
    with pytest.raises(AssertionError), optimizer.skip_synchronize():
        pass
    with pytest.raises(NotImplementedError):
        hvd.DistributedOptimizer(cases.sgd(model.parameters()), op=hvd.Adasum, process_set=process_set)
    assert size > 1
    assert all(p.grad is not None for p in model.parameters())


def test_group_added_later_takes_part(rank: int, size: int) -> None:
    first, second = nn.Parameter(torch.zeros(size)), nn.Parameter(torch.zeros(size))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([first], lr=1.0), op=hvd.Adasum)

    optimizer.add_param_group({"params": [second]})
    (first[rank] + second[rank]).backward()
    optimizer.step()

    torch.testing.assert_close(first.detach(), torch.full((size,), -1.0))
    torch.testing.assert_close(second.detach(), torch.full((size,), -1.0))
