"""Parameters by the names that they once had."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])


def renamed(**new_names: str) -> Callable[[_Function], _Function]:
    """Let a function take parameters by old names, too: `@renamed(min_np="min_num_proc")`.

    The caller is warned; old and new name together are a TypeError, as of a parameter given twice.
    """

    def wrap(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old, new in new_names.items():
                if old not in kwargs:
                    continue
                if new in kwargs:
                    message = f"{function.__qualname__}: {old} is the old name of {new}; give one of them"
                    raise TypeError(message)
                warnings.warn(f"{old} is deprecated, use {new} instead", DeprecationWarning, stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return cast("_Function", call)  # its signature is that of the function

    return wrap
