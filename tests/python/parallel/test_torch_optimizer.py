"""DistributedOptimizer: N ranks on their shares train like one process on the whole batch."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest
import torch
import training_cases as cases
from torch import nn
from torch_releases import needs_fused

import horovod.torch as hvd


@pytest.fixture(params=["step", "background"])
def schedule(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test under both schedules."""
    monkeypatch.setenv("HOROVOD_GRADIENT_SCHEDULE", request.param)
    return str(request.param)


OPTIMIZERS = {
    "sgd": cases.sgd,
    "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "rmsprop_foreach": lambda p: torch.optim.RMSprop(p, lr=0.01, foreach=True),
    "adadelta": torch.optim.Adadelta,
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.01),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs_fused if "fused" in name else ()) for name in OPTIMIZERS]
)
def test_trains_like_one_process(name: str) -> None:
    batches = cases.make_batches(6, torch.float64)

    model = cases.train_distributed(OPTIMIZERS[name], batches)

    cases.assert_same_parameters(model, cases.train_alone(OPTIMIZERS[name], batches), atol=1e-10)
    cases.assert_equal_on_all_ranks(model)


def test_trains_like_one_process_under_both_schedules(schedule: str) -> None:
    batches = cases.make_batches(6)

    model = cases.train_distributed(cases.sgd, batches)

    assert hvd.gradient_schedule().mode == schedule
    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


def test_two_runs_are_bitwise_equal(schedule: str) -> None:
    batches = cases.make_batches(8)

    first = cases.train_distributed(cases.sgd, batches)
    second = cases.train_distributed(cases.sgd, batches)

    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other), schedule


@pytest.mark.parametrize(
    "options",
    [
        {"gradient_predivide_factor": 2.0},
        {"groups": 2},
        {"groups": 2, "gradient_predivide_factor": 4.0},
        {"groups": 100},
    ],
    ids=str,
)
def test_options_do_not_change_the_result(options: dict[str, Any], schedule: str) -> None:
    del schedule
    batches = cases.make_batches(4)

    model = cases.train_distributed(cases.sgd, batches, **options)

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


def test_sum_is_the_average_times_the_size(size: int) -> None:
    batches = cases.make_batches(3)

    model = cases.train_distributed(lambda p: torch.optim.SGD(p, lr=0.1 / size), batches, op=hvd.Sum)

    cases.assert_same_parameters(model, cases.train_alone(lambda p: torch.optim.SGD(p, lr=0.1), batches))


def test_is_an_instance_of_the_wrapped_class_with_its_name() -> None:
    model = cases.make_model()

    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))

    assert isinstance(optimizer, torch.optim.SGD)
    assert type(optimizer).__name__ == "SGD"
    assert optimizer.defaults["momentum"] == 0.9
    assert optimizer.op == hvd.Average
    assert optimizer.backward_passes_per_step == 1
    assert optimizer.gradient_predivide_factor == 1.0
    assert optimizer.sparse_as_dense is False
    assert optimizer.process_set is hvd.global_process_set


def test_keeps_the_state_of_the_optimizer_it_wraps() -> None:
    batches = cases.make_batches(4)
    model = cases.make_model()
    plain = cases.sgd(model.parameters())
    cases.train(model, plain, batches[:2])

    optimizer = hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters())
    cases.train(model, optimizer, [cases.share(batch) for batch in batches[2:]])

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


def test_works_for_an_optimizer_with_arguments_that_no_group_holds() -> None:
    class Scaled(torch.optim.Optimizer):
        def __init__(self, params: Any, scale: float) -> None:
            super().__init__(params, {})
            self.scale = scale

        @torch.no_grad()
        def step(self) -> str:  # type: ignore[override]
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad, alpha=self.scale)
            return "stepped"

    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(Scaled(model.parameters(), 0.1))
    batch = cases.make_batches(1)[0]

    optimizer.zero_grad()
    cases.loss_of(model, cases.share(batch)).backward()

    assert optimizer.step() == "stepped"
    expected = cases.train_alone(lambda p: torch.optim.SGD(p, lr=0.1), [batch])
    cases.assert_same_parameters(model, expected)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad_takes_its_argument(set_to_none: bool) -> None:
    batches = cases.make_batches(4)
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))

    for batch in batches:
        optimizer.zero_grad(set_to_none=set_to_none)
        assert all((p.grad is None) or not p.grad.any() for p in model.parameters())
        cases.loss_of(model, cases.share(batch)).backward()
        optimizer.step()

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


@pytest.mark.disagreement
def test_zero_grad_between_backward_and_step_is_refused() -> None:
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    cases.loss_of(model, cases.share(cases.make_batches(1)[0])).backward()

    with pytest.raises(AssertionError, match="race condition"):
        optimizer.zero_grad()

    optimizer.step()
    optimizer.zero_grad()


def test_step_after_synchronize_warns() -> None:
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    cases.loss_of(model, cases.share(cases.make_batches(1)[0])).backward()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.synchronize()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    assert len(caught) == 1
    assert "optimizer.step() called without optimizer.skip_synchronize()" in str(caught[0].message)


def test_clipping_between_synchronize_and_step() -> None:
    batches = cases.make_batches(4)
    model, expected = cases.make_model(), cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    plain = cases.sgd(expected.parameters())

    for batch in batches:
        optimizer.zero_grad()
        cases.loss_of(model, cases.share(batch)).backward()
        optimizer.synchronize()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with optimizer.skip_synchronize():
                optimizer.step()
        plain.zero_grad()
        cases.loss_of(expected, batch).backward()
        nn.utils.clip_grad_norm_(expected.parameters(), 0.1)
        plain.step()

    cases.assert_same_parameters(model, expected)


def test_accumulates_backward_passes(schedule: str) -> None:
    del schedule
    batches = cases.make_batches(6)
    model, expected = cases.make_model(), cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()), backward_passes_per_step=2)
    plain = cases.sgd(expected.parameters())

    for index in range(0, 6, 2):
        optimizer.zero_grad()
        plain.zero_grad()
        for batch in batches[index : index + 2]:
            cases.loss_of(model, cases.share(batch)).backward()
            cases.loss_of(expected, batch).backward()
        optimizer.step()
        plain.step()

    cases.assert_same_parameters(model, expected)


def test_number_of_passes_can_be_changed_and_cut_short() -> None:
    batches = cases.make_batches(3)
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))

    optimizer.set_backward_passes_per_step(3)
    cases.train(model, optimizer, [cases.share(batch) for batch in batches])

    assert optimizer.backward_passes_per_step == 3
    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


@pytest.mark.disagreement
def test_more_passes_than_announced_are_an_error() -> None:
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    batch = cases.share(cases.make_batches(1)[0])
    cases.loss_of(model, batch).backward()

    with pytest.raises(AssertionError, match="backward_passes_per_step"):
        cases.loss_of(model, batch).backward()

    optimizer.synchronize()


def test_closure_is_followed_by_the_reduction() -> None:
    batches = cases.make_batches(3)
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))

    for batch in batches:

        def closure(batch: cases.Batch = batch) -> torch.Tensor:
            optimizer.zero_grad()
            loss = cases.loss_of(model, cases.share(batch))
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        assert isinstance(loss, torch.Tensor)

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


@pytest.mark.disagreement
def test_optimizer_that_is_gone_leaves_the_parameters_free() -> None:
    batches = cases.make_batches(2)
    model = cases.make_model()
    first = hvd.DistributedOptimizer(cases.sgd(model.parameters()), named_parameters=model.named_parameters())
    del first
    gc.collect()

    second = hvd.DistributedOptimizer(
        cases.sgd(model.parameters()), named_parameters=model.named_parameters()
    )
    cases.train(model, second, [cases.share(batch) for batch in batches])

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


def test_wrapping_again_replaces_the_options() -> None:
    batches = cases.make_batches(3)
    model = cases.make_model()
    once = hvd.DistributedOptimizer(cases.sgd(model.parameters()))

    twice = hvd.DistributedOptimizer(once, groups=1)
    cases.train(model, twice, [cases.share(batch) for batch in batches])

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


def test_goes_on_after_shutdown_and_init() -> None:
    batches = cases.make_batches(4)
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    shares = [cases.share(batch) for batch in batches]
    cases.train(model, optimizer, shares[:2])

    hvd.shutdown()
    hvd.init()
    cases.train(model, optimizer, shares[2:])

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


def test_elastic_job_of_one_rank_has_hooks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setenv("HOROVOD_ELASTIC", "1")
    batches = cases.make_batches(2)

    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()))
    cases.loss_of(model, cases.share(batches[0])).backward()

    assert len(optimizer._handles) == len(list(model.parameters())), size
    optimizer.step()
    assert not optimizer._handles


@pytest.mark.disagreement
def test_private_names_of_the_original() -> None:
    model = cases.make_model()
    optimizer = hvd.DistributedOptimizer(
        cases.sgd(model.parameters()), model.named_parameters(), backward_passes_per_step=2
    )
    parameters = list(model.parameters())

    assert optimizer._parameter_names[parameters[0]] == "0.weight"
    assert optimizer._requires_update == set(parameters)
    assert optimizer._allreduce_delay[parameters[0]] == 2
    assert optimizer._handles == {}
    cases.loss_of(model, cases.share(cases.make_batches(1)[0])).backward()
    assert optimizer._allreduce_delay[parameters[0]] == 1
    optimizer.step()
    assert optimizer._handles == {}
    assert optimizer.find_duplicates([1, 2, 1]) == {1}
    assert optimizer._compression is hvd.Compression.none
    optimizer.backward_passes_per_step = 3
    assert optimizer._allreduce_delay[parameters[0]] == optimizer.backward_passes_per_step == 3


def test_process_set(process_set: hvd.ProcessSet, rank: int) -> None:
    batches = cases.make_batches(3)
    model, expected = cases.make_model(), cases.make_model()
    optimizer = hvd.DistributedOptimizer(cases.sgd(model.parameters()), process_set=process_set, groups=2)
    plain = cases.sgd(expected.parameters())

    cases.train(model, optimizer, [cases.share(batch) for batch in batches])
    members = process_set.ranks if process_set.included() else [rank]
    for batch in batches:
        plain.zero_grad()
        for member in members:
            (cases.loss_of(expected, cases.share(batch, member)) / len(members)).backward()
        plain.step()

    cases.assert_same_parameters(model, expected)
