"""The name of the program that a rank was; see _gone."""

from __future__ import annotations

from horovod.spark._gone import gone_function

__all__ = ["main"]

main = gone_function("horovod.spark.task.gloo_exec_fn.main")
