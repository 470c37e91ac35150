"""Results of checks, kept in a file for a while. The launcher caches none; programs of users may."""

from __future__ import annotations

import ast
import functools
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

_SECONDS_PER_MINUTE = 60
_NO_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _text_of_key(key: Any) -> str:
    """The same text for equal keys in every process; the order of a set differs between them."""
    if isinstance(key, (set, frozenset)):
        return "{" + ",".join(sorted(_text_of_key(entry) for entry in key)) + "}"
    if isinstance(key, tuple):
        return "(" + ",".join(_text_of_key(entry) for entry in key) + ")"
    return repr(key)


def _literal(value: Any) -> str | None:
    """The value as a literal of Python, None if it has none. Unlike a pickle, reading one runs nothing."""
    text = repr(value)
    try:
        return text if ast.literal_eval(text) == value else None
    except _NO_LITERAL:
        return None


class Cache:
    """Values by key; they are forgotten when old, or when `parameters_hash` changes.

    The file keeps values that are made of numbers, texts, tuples, lists, sets and dicts. Others are kept
    for as long as this object lives.
    """

    def __init__(
        self, cache_folder: str, cache_staleness_threshold_in_minutes: float, parameters_hash: str
    ) -> None:
        """Read what an earlier process kept in the folder."""
        self._path = Path(cache_folder) / "cache.json"
        self._lifetime = cache_staleness_threshold_in_minutes * _SECONDS_PER_MINUTE
        self._hash = parameters_hash
        self._lock = threading.Lock()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._content = self._load()

    def _load(self) -> dict[str, tuple[float, Any]]:
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            if stored["parameters_hash"] != self._hash:
                return {}
            literals = stored["literals"].items()
            return {key: (float(when), ast.literal_eval(text)) for key, (when, text) in literals}
        except (OSError, KeyError, AttributeError, *_NO_LITERAL):
            return {}  # none, or not one that this class wrote

    def get(self, key: Any) -> Any:
        """The value, or None if there is none that is young enough."""
        with self._lock:
            when, value = self._content.get(_text_of_key(key), (0.0, None))
        return value if time.time() - when < self._lifetime else None

    def put(self, key: Any, val: Any) -> None:
        """Keep a value."""
        with self._lock:
            self._content[_text_of_key(key)] = (time.time(), val)
            texts = {name: (when, _literal(value)) for name, (when, value) in self._content.items()}
            literals = {name: pair for name, pair in texts.items() if pair[1] is not None}
            text = json.dumps({"parameters_hash": self._hash, "literals": literals})
            self._path.write_text(text, encoding="utf-8")

    def parameters_hash(self) -> str:
        """What the values depend on."""
        return self._hash


def use_cache() -> Callable[[_Function], Callable[..., Any]]:
    """Decorate a function: called with `fn_cache=` a Cache, it returns what it returned before.

    A result belongs to the name of the function, the entries of its first argument and the keywords. None
    is not kept.
    """

    def decorate(function: _Function) -> Callable[..., Any]:
        @functools.wraps(function)
        def cached(*args: Any, fn_cache: Cache | None = None, **kwargs: Any) -> Any:
            if fn_cache is None:
                return function(*args, **kwargs)
            first = tuple(args[0]) if args else ()
            key = (function.__name__, first, frozenset(kwargs.items()))
            result = fn_cache.get(key)
            if result is None:
                result = function(*args, **kwargs)
                if result is not None:
                    fn_cache.put(key, result)
            return result

        return cached

    return decorate
