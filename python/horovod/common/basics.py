"""Life cycle and place in the job."""

from horovod._core.basics import HorovodBasics

__all__ = ["HorovodBasics"]
