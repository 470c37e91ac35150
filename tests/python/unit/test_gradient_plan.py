"""Gradients without a framework: factors, names, groups, and what is submitted when."""

from __future__ import annotations

import pytest

from horovod._core import gradients
from horovod._core.gradients import Gradient, GradientPlan


def plan_of(names: str, passes: int = 1) -> tuple[GradientPlan[Gradient], list[Gradient]]:
    plan: GradientPlan[Gradient] = GradientPlan(passes)
    for name in names:
        plan.add(Gradient(name, 0))
    return plan, plan.gradients


def names_of(some: object) -> str:
    return "".join(gradient.name for gradient in some)  # type: ignore[attr-defined]


def submit(plan: GradientPlan[Gradient], gradient: Gradient) -> str:
    ready = plan.count_pass(gradient)
    for one in ready:
        one.submitted = True
    return names_of(ready)


def test_gradient_is_submitted_after_its_last_pass() -> None:
    plan, (a,) = plan_of("a", passes=3)

    assert [submit(plan, a) for _ in range(3)] == ["", "", "a"]
    with pytest.raises(AssertionError, match=r"'a'.*backward_passes_per_step \(3\).*use_reentrant=False"):
        plan.count_pass(a)


def test_reset_begins_the_next_step() -> None:
    plan, (a, b) = plan_of("ab")
    submit(plan, a)

    plan.reset()

    assert not a.submitted
    assert submit(plan, a) == "a"
    assert submit(plan, b) == "b"


def test_group_is_submitted_with_its_last_member() -> None:
    plan, (a, b, c) = plan_of("abc")
    plan.set_groups([[a, c], [b]])

    for _ in range(2):
        assert submit(plan, c) == ""
        assert submit(plan, b) == "b"
        assert submit(plan, a) == "ac"
        plan.reset()


def test_missing_names_each_group_once() -> None:
    plan, (a, b, c, d) = plan_of("abcd", passes=2)
    plan.set_groups([[b, c]])
    submit(plan, a)
    submit(plan, b)
    submit(plan, b)
    submit(plan, d)
    submit(plan, d)

    assert [names_of(batch) for batch in plan.missing()] == ["a", "bc"]


def test_number_of_passes_can_be_changed() -> None:
    plan, (a,) = plan_of("a", passes=1)

    plan.set_backward_passes(2)

    assert [submit(plan, a) for _ in range(2)] == ["", "a"]
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="backward_passes_per_step"):
            plan.set_backward_passes(wrong)


def test_number_of_passes_may_change_while_gradients_are_under_way() -> None:
    plan, (a, b, c) = plan_of("abc", passes=1)
    plan.set_groups([[b, c]])
    submit(plan, a)
    submit(plan, b)

    plan.set_backward_passes(2)

    assert [names_of(batch) for batch in plan.missing()] == ["bc"]
    plan.reset()
    assert [submit(plan, g) for g in (a, a, b, b, c, c)] == ["", "a", "", "", "", "bc"]


@pytest.mark.parametrize(
    ("count", "groups"), [(1, ["abcde"]), (2, ["abc", "de"]), (3, ["ab", "cd", "e"]), (9, list("abcde"))]
)
def test_a_number_of_groups_splits_evenly(count: int, groups: list[str]) -> None:
    formed = gradients.form_groups(list("abcde"), count, key=str)

    assert ["".join(group) for group in formed] == groups


def test_given_groups_leave_the_others_alone() -> None:
    formed = gradients.form_groups(list("abcde"), [["d", "b"], ["x"], ["a"]], key=str)

    assert ["".join(group) for group in formed] == ["db", "a", "c", "e"]


@pytest.mark.parametrize("groups", [0, -2, 1.5, "2", [1], [["a"]]])
def test_bad_groups_are_refused(groups: object) -> None:
    with pytest.raises(ValueError, match="groups"):
        gradients.check_groups(groups, lambda value: isinstance(value, bytes))


def test_member_of_two_groups_is_refused() -> None:
    member = b"x"
    gradients.check_groups([[member], [b"y"]], lambda value: isinstance(value, bytes))
    with pytest.raises(ValueError, match="once"):
        gradients.check_groups([[member], [member]], lambda value: isinstance(value, bytes))


def test_factors() -> None:
    assert gradients.scale_factors(average=True, predivide_factor=1.0) == (1.0, 1.0)
    assert gradients.scale_factors(average=True, predivide_factor=4.0) == (0.25, 4.0)
    assert gradients.scale_factors(average=False, predivide_factor=1.0) == (1.0, 1.0)
    with pytest.raises(ValueError, match="gradient_predivide_factor"):
        gradients.scale_factors(average=False, predivide_factor=2.0)


def test_names() -> None:
    assert gradients.default_name(1, 2) == "allreduce.noname.1.2"
    assert gradients.find_duplicates(["a", "b", "a"]) == {"a"}
    assert gradients.checked_names([("a", 1)]) == [("a", 1)]
    with pytest.raises(ValueError, match="duplicates: a"):
        gradients.checked_names([("a", 1), ("a", 2)])
    with pytest.raises(ValueError, match="int"):
        gradients.checked_names([3])
