"""Texts of elastic jobs."""

from __future__ import annotations

RESET_LIMIT_EXCEEDED_MESSAGE = "the number of resets during elastic job exceeded limit: {}"
