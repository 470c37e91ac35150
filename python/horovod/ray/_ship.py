"""The user's function on its way to the workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray


@dataclass(frozen=True)
class Call:
    """The user's function with its arguments, as a function of the executable."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self, executable: Any) -> Any:
        """Call it; the executable is not for it."""
        del executable
        return self.function(*self.args, **self.kwargs)


def name_of(function: Any) -> str:
    """How people know a function."""
    return getattr(function, "__qualname__", None) or repr(function)


def ship(what: str, call: Any, function: Any) -> Any:
    """Put a call where all workers find it; TypeError that names the function if it cannot be pickled."""
    try:
        return ray.put(call)
    except (TypeError, AttributeError, ValueError, ray.cloudpickle.pickle.PicklingError) as error:
        message = (
            f"{what}: {name_of(function)} or its arguments cannot be pickled, so they cannot go to "
            f"the workers: {error}. Objects such as locks, sockets and loaders are made inside the function"
        )
        raise TypeError(message) from error
