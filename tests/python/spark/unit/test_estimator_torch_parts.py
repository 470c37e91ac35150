"""Losses, shapes and optimizers of the PyTorch estimators; no Spark runs."""

from __future__ import annotations

import copy

import pytest
import torch

from horovod.spark.common._gpus import gpu_of_rank
from horovod.spark.lightning._optimizers import parse, restore, scale_rates, states_of
from horovod.spark.torch._losses import combined_loss, loss_functions
from horovod.spark.torch._meters import metric_groups
from horovod.spark.torch._packing import pack, save_checkpoint, trained_copy, unpack
from horovod.spark.torch._shapes import outputs_and_labels, reshaped

mse = torch.nn.functional.mse_loss


@pytest.mark.parametrize(
    ("shape", "expected"),
    [(None, (6, 4)), ([-1, 2, 2], (6, 2, 2)), ([2, 2], (6, 2, 2)), ([4], (6, 4)), ([6, 4, 1], (6, 4, 1))],
)
def test_features_get_their_shapes(shape, expected):
    assert tuple(reshaped("x", torch.zeros(6, 4), shape).shape) == expected


def test_a_shape_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match=r"column 'x' has 4 elements in a row.*\[3\]"):
        reshaped("x", torch.zeros(6, 4), [3])


def test_labels_take_the_shapes_of_the_outputs():
    outputs, labels = outputs_and_labels(torch.zeros(6, 1), [torch.zeros(6)], None)
    assert outputs[0].shape == labels[0].shape

    _, labels = outputs_and_labels((torch.zeros(6, 3),), [torch.zeros(6)], None)
    assert tuple(labels[0].shape) == (6,)

    _, labels = outputs_and_labels([torch.zeros(6, 2)], [torch.zeros(12)], [[-1, 2]])
    assert tuple(labels[0].shape) == (6, 2)


def test_outputs_and_labels_must_be_as_many():
    with pytest.raises(ValueError, match="2 outputs for 1 labels"):
        outputs_and_labels((torch.zeros(1), torch.zeros(1)), [torch.zeros(1)], None)


@pytest.mark.parametrize("loss", [mse, torch.nn.MSELoss()])
def test_rows_have_weights(loss):
    output, label, weights = torch.tensor([[1.0], [3.0]]), torch.zeros(2, 1), torch.tensor([1.0, 0.5])

    value = combined_loss([loss], None, by_row=True)([output], [label], weights)

    assert value.item() == pytest.approx((1 + 9 * 0.5) / 2)


def test_labels_have_weights():
    ones, zeros = [torch.ones(2)] * 2, [torch.zeros(2), torch.ones(2)]

    assert combined_loss([mse, mse], None, by_row=False)(ones, zeros, None).item() == pytest.approx(0.5)
    assert combined_loss([mse, mse], [0.9, 0.1], by_row=False)(ones, zeros, None).item() == pytest.approx(0.9)


def test_a_loss_without_reduction_cannot_have_weights_of_rows():
    with pytest.raises(ValueError, match="no parameter `reduction`"):
        combined_loss([lambda output, label: output], None, by_row=True)


def test_losses_come_from_functions_or_constructors():
    assert loss_functions(mse, None, 2) == [mse, mse]
    assert [type(each) for each in loss_functions(None, [torch.nn.MSELoss], 1)] == [torch.nn.MSELoss]
    with pytest.raises(ValueError, match="2 loss functions for 3 labels"):
        loss_functions([mse, mse], None, 3)


def test_metrics_are_groups_of_one_function_per_label():
    assert metric_groups([mse, [mse, len]], 2) == [[mse, mse], [mse, len]]
    with pytest.raises(ValueError, match="a group of 3 metrics for 2 labels"):
        metric_groups([[mse] * 3], 2)


def test_model_and_optimizer_stay_together():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    packed_model, packed_optimizer = unpack(pack(model, optimizer))

    assert packed_optimizer.param_groups[0]["params"][0] is packed_model.weight


def test_an_optimizer_of_another_model_is_made_anew():
    other = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)

    model, made = unpack(pack(torch.nn.Linear(2, 1), optimizer))

    assert made.param_groups[0]["params"][0] is model.weight
    assert made.param_groups[0]["lr"] == 0.1
    with pytest.raises(ValueError, match=r"make it from model.parameters\(\)"):
        pack(torch.nn.Linear(2, 1, bias=False), optimizer)


def test_a_checkpoint_is_put_into_a_copy():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    trained, its_optimizer = unpack(pack(model, optimizer))
    trained(torch.ones(1, 2)).sum().backward()
    its_optimizer.step()

    copied, copied_optimizer = trained_copy(model, optimizer, save_checkpoint(trained, its_optimizer))

    assert torch.equal(copied.weight, trained.weight)
    assert not torch.equal(copied.weight, model.weight)
    assert copied_optimizer.state[copied.weight]["step"] == 1


def _optimizer():
    return torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1)


def test_forms_of_configured_optimizers():
    one = _optimizer()
    schedule = torch.optim.lr_scheduler.StepLR(one, 1)

    assert parse(one) == (one, [])
    assert parse([one])[0] is one
    assert parse(([one], [schedule]))[1][0].scheduler is schedule
    found = parse(
        {"optimizer": one, "lr_scheduler": {"scheduler": schedule, "interval": "step", "frequency": 2}}
    )
    assert (found[1][0].interval, found[1][0].frequency) == ("step", 2)


@pytest.mark.parametrize("configured", [None, [], [_optimizer(), _optimizer()]])
def test_other_numbers_of_optimizers_are_refused(configured):
    with pytest.raises(ValueError, match="takes exactly one"):
        parse(configured)


def _warm_up_and_decay():
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1)
    stages = [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=3),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10),
    ]
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, stages, [3])
    return optimizer, scheduler, parse({"optimizer": optimizer, "lr_scheduler": scheduler})[1]


def _rates(optimizer, scheduler, count):
    rates = []
    for _ in range(count):
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


def test_schedulers_inside_of_others_go_on_where_they_were():
    optimizer, scheduler, scheduled = _warm_up_and_decay()
    _rates(optimizer, scheduler, 5)
    states = states_of(scheduled)
    of_optimizer = copy.deepcopy(optimizer.state_dict())
    expected = _rates(optimizer, scheduler, 5)

    optimizer, scheduler, scheduled = _warm_up_and_decay()
    optimizer.load_state_dict(of_optimizer)
    assert restore(scheduled, states)

    assert _rates(optimizer, scheduler, 5) == pytest.approx(expected)


def test_rates_of_schedulers_inside_of_others_are_scaled():
    _, scheduler, scheduled = _warm_up_and_decay()

    scale_rates(scheduled, 4)

    assert [inner.base_lrs for inner in scheduler._schedulers] == [[pytest.approx(0.4)]] * 2


def test_other_schedulers_than_before_begin_anew():
    _, _, scheduled = _warm_up_and_decay()

    assert not restore(scheduled, [])


@pytest.mark.parametrize(
    ("devices", "by_rank", "expected"),
    [("", "0", 1), ("3", "0", 3), ("3,2", "0", 3), ("3", "1", 1), ("7", "0", 1)],
)
def test_the_gpu_that_spark_gave_goes_before_the_local_rank(monkeypatch, devices, by_rank, expected):
    monkeypatch.setenv("HOROVOD_SPARK_DEVICES", devices)
    monkeypatch.setenv("HOROVOD_SPARK_USE_LOCAL_RANK_GPU_INDEX", by_rank)

    assert gpu_of_rank(5, 4) == expected


def test_a_gpu_without_a_number_is_named(monkeypatch):
    monkeypatch.setenv("HOROVOD_SPARK_DEVICES", "GPU-ab")

    with pytest.raises(ValueError, match="the GPU 'GPU-ab', which is not a number"):
        gpu_of_rank(0, 4)
