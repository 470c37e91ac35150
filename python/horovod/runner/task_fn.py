"""The name of the program that looked at the network of other hosts; see horovod.runner._gone."""

from __future__ import annotations

from ._gone import gone_function

__all__ = ["main"]

main = gone_function("horovod.runner.task_fn.main")

if __name__ == "__main__":
    main()
