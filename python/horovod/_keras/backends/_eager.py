"""Variables of the backends that have no graphs of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import numpy as np


def in_graph() -> bool:
    """Return whether variables have values only in a session."""
    return False


def read_variable(variable: Any) -> float:
    """Return the value of a number or of a variable that holds one."""
    return float(np.asarray(variable))


def write_variable(variable: Any, value: float) -> None:
    """Set a variable."""
    variable.assign(value)
