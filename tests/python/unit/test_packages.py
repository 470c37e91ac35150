"""A package that is missing skips tests by name, and cannot do so on CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packages import need


def test_a_package_that_is_there_is_returned() -> None:
    assert need("json", "python") is json


def test_a_missing_package_skips_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)

    with pytest.raises(pytest.skip.Exception, match=r"no_such\.part is not installed \(\./dev setup spark\)"):
        need("no_such.part", "spark")


def test_a_missing_package_fails_by_name_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match=r"no_such is not installed \(\./dev setup ray\)"):
        need("no_such", "ray")


def test_a_package_that_lacks_another_one_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "half_there.py").write_text("import no_such_either\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="no_such_either"):
        need("half_there", "ray")


def test_nothing_else_skips_where_a_package_is_missing() -> None:
    tests = Path(__file__).parents[1]
    hidden = "importor" + "skip"

    assert [path.name for path in tests.rglob("*.py") if hidden in path.read_text()] == []
