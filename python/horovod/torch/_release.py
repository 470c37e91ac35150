"""Which release of torch this is, where that must be known; elsewhere code asks for what it needs."""

from __future__ import annotations

import re
from typing import Final

import torch


def release_of(version: str) -> tuple[int, int]:
    """Return major and minor of a version; pure. One that cannot be read counts as a future release."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (99, 0)


RELEASE: Final = release_of(str(torch.__version__))
