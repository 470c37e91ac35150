"""When gradients are reduced: the decision table, and the variable that forces it."""

from __future__ import annotations

import pytest

from horovod._core.schedule import GradientSchedule, Surroundings, decide, requested_mode


def around(**changes: object) -> Surroundings:
    values: dict[str, object] = {
        "ranks": 2,
        "ranks_on_host": 2,
        "hosts": 1,
        "cores": 2,
        "compute_threads": 1,
        "device": "cpu",
    }
    return Surroundings(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "mode", "reason"),
    [
        ({}, "step", "no core is idle"),
        ({"cores": 1}, "step", "no core is idle"),
        ({"compute_threads": 8, "cores": 8}, "step", "2 ranks x 8 compute threads on 8 cores"),
        ({"cores": 3}, "background", "idle cores"),
        ({"compute_threads": 0, "cores": 2}, "step", "no core is idle"),
        ({"hosts": 2, "ranks": 4}, "background", "network between 2 hosts"),
        ({"device": "cuda"}, "background", "cuda"),
        ({"ranks": 1, "ranks_on_host": 1, "cores": 8}, "step", "one rank"),
    ],
)
def test_decision(changes: dict[str, object], mode: str, reason: str) -> None:
    schedule = decide(around(**changes))

    assert schedule.mode == mode
    assert reason in schedule.reason


@pytest.mark.parametrize("mode", ["step", "background"])
def test_the_variable_forces_a_mode(mode: str) -> None:
    forced = requested_mode({"HOROVOD_GRADIENT_SCHEDULE": mode.upper()})

    for changes in ({}, {"hosts": 2}, {"cores": 64}, {"ranks": 1}):
        assert decide(around(**changes), forced) == GradientSchedule(
            forced, f"HOROVOD_GRADIENT_SCHEDULE={mode}"
        )


@pytest.mark.parametrize("value", ["", "auto", " AUTO "])
def test_auto_forces_nothing(value: str) -> None:
    assert requested_mode({"HOROVOD_GRADIENT_SCHEDULE": value}) is None
    assert requested_mode({}) is None


def test_garbage_names_the_variable() -> None:
    with pytest.raises(ValueError, match=r"HOROVOD_GRADIENT_SCHEDULE.*'sometimes'"):
        requested_mode({"HOROVOD_GRADIENT_SCHEDULE": "sometimes"})


def test_modes_have_the_progress_of_the_core() -> None:
    assert GradientSchedule("step", "").progress == 2
    assert GradientSchedule("background", "").progress == 3
