"""DistributedOptimizer: what is refused, and how groups and names are formed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import training_cases as cases
from torch import nn

import horovod.torch as hvd


def wrap(model: nn.Module, **options: Any) -> Any:
    return hvd.DistributedOptimizer(cases.sgd(model.parameters()), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"gradient_predivide_factor": 2.0, "op": hvd.Sum},
        {"backward_passes_per_step": 0},
        {"backward_passes_per_step": -1},
        {"groups": 0},
        {"groups": -1},
        {"groups": ["x"]},
        {"groups": [["x"]]},
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        wrap(cases.make_model(), **options)


def test_parameter_in_two_groups_is_refused() -> None:
    model = cases.make_model()
    parameters = list(model.parameters())

    with pytest.raises(ValueError, match="once"):
        wrap(model, groups=[parameters[:2], parameters[1:3]])


def test_names_must_be_pairs_unique_and_complete() -> None:
    model = cases.make_model()
    pairs = list(model.named_parameters())

    with pytest.raises(ValueError, match="tuples"):
        wrap(model, named_parameters=model.parameters())
    with pytest.raises(ValueError, match="duplicates"):
        wrap(model, named_parameters=pairs + list(cases.make_model().named_parameters()))
    with pytest.raises(ValueError, match="not named"):
        wrap(model, named_parameters=pairs[:1])


def test_default_names_hold_group_and_place() -> None:
    model = cases.make_model()
    parameters = list(model.parameters())
    plain = torch.optim.SGD([{"params": parameters[:2]}, {"params": parameters[2:]}], lr=0.1)

    optimizer = hvd.DistributedOptimizer(plain)

    assert optimizer._parameter_names[parameters[1]] == "allreduce.noname.0.1"
    assert optimizer._parameter_names[parameters[2]] == "allreduce.noname.1.0"


def test_num_groups_is_the_old_name_of_groups() -> None:
    batches = cases.make_batches(2)

    with pytest.warns(DeprecationWarning, match="num_groups"):
        model = cases.train_distributed(cases.sgd, batches, num_groups=2)

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


@pytest.mark.parametrize("predivide", [1.0, 2.0])
def test_groups_as_lists_of_parameters(predivide: float) -> None:
    batches = cases.make_batches(3)
    model = cases.make_model()
    first, second, third, *_ = model.parameters()
    optimizer = wrap(model, groups=[[third, first], [second]], gradient_predivide_factor=predivide)

    cases.train(model, optimizer, [cases.share(batch) for batch in batches])

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


@pytest.mark.disagreement
def test_groups_follow_the_order_of_the_first_rank(rank: int) -> None:
    batches = cases.make_batches(3)
    model = cases.make_model()
    parameters = list(model.parameters())
    plain = cases.sgd(parameters if rank == 0 else parameters[::-1])
    optimizer = hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters(), groups=2)

    cases.train(model, optimizer, [cases.share(batch) for batch in batches])

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))


def test_predivide_factor_can_be_changed_between_steps() -> None:
    batches = cases.make_batches(4)
    model = cases.make_model()
    optimizer = wrap(model)

    for index, batch in enumerate(batches):
        optimizer.gradient_predivide_factor = 1.0 + index
        cases.train(model, optimizer, [cases.share(batch)])

    cases.assert_same_parameters(model, cases.train_alone(cases.sgd, batches))
