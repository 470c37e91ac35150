"""Results of checks, kept in a file for a while. The launcher caches none; programs of users may."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

_SECONDS_PER_MINUTE = 60


class Cache:
    """Values (of JSON) by name; they are forgotten when old, or when `parameters_hash` changes."""

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

    def _load(self) -> dict[str, Any]:
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        same = isinstance(stored, dict) and stored.get("parameters_hash") == self._hash
        return dict(stored["values"]) if same else {}

    def get(self, key: str) -> Any:
        """The value, or None if there is none that is young enough."""
        with self._lock:
            when, value = self._content.get(key, (0.0, None))
        return value if time.time() - when < self._lifetime else None

    def put(self, key: str, val: Any) -> None:
        """Keep a value."""
        with self._lock:
            self._content[key] = (time.time(), val)
            text = json.dumps({"parameters_hash": self._hash, "values": self._content})
            self._path.write_text(text, encoding="utf-8")

    def parameters_hash(self) -> str:
        """What the values depend on."""
        return self._hash
