"""What a rank of a Spark job can ask about its task."""

from __future__ import annotations

import os

from horovod.spark._process import DEVICES_VARIABLE

__all__ = ["get_available_devices"]


def get_available_devices() -> list[str]:
    """The addresses of the GPUs that Spark gave this task; empty without such scheduling."""
    return [address for address in os.environ.get(DEVICES_VARIABLE, "").split(",") if address]
