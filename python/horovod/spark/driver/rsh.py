"""The name of what ran commands in tasks; see _gone."""

from __future__ import annotations

from horovod.spark._gone import gone_function

__all__ = ["rsh"]

rsh = gone_function("horovod.spark.driver.rsh.rsh")
