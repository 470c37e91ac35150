"""Objects as text. Only for text of one's own: reading it back runs what it says."""

from __future__ import annotations

import base64
import pickle
from typing import Any

from horovod.runner._shipment import import_cloudpickle


def dumps_base64(obj: Any, to_ascii: bool = True) -> str | bytes:
    """Pickle an object as base64."""
    encoded = base64.b64encode(import_cloudpickle().dumps(obj))
    return encoded.decode("ascii") if to_ascii else encoded


def loads_base64(encoded: str | bytes) -> Any:
    """The object that dumps_base64 was given."""
    return pickle.loads(base64.b64decode(encoded))  # noqa: S301 - said above
