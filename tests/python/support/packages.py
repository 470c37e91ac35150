"""Packages that a suite needs and an environment may lack: skipped by name here, a failure on CI."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def need(name: str, setup: str) -> Any:
    """Return a module. One that is missing skips the tests by name; with CI=true it fails them.

    `setup` is the group of ./dev setup that installs it. A module that is there and breaks is an error.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        text = f"{name} is not installed (./dev setup {setup})"
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(text, pytrace=False)
        pytest.skip(text, allow_module_level=True)
