"""Jobs of IBM Spectrum LSF, as the launcher sees them."""

from __future__ import annotations

import os

from horovod.runner import _lsf_node
from horovod.runner._program import plan


class LSFUtils:
    """The hosts of the current LSF job."""

    @staticmethod
    def using_lsf() -> bool:
        """Whether this is a process of an LSF job."""
        return "LSB_JOBID" in os.environ

    @staticmethod
    def get_compute_hosts() -> list[str]:
        """The compute nodes of the job."""
        return [host["name"] for host in plan(["true"])["hosts"]]

    @staticmethod
    def get_num_processes() -> int:
        """How many workers the job has: one per GPU."""
        return len(plan(["true"])["ranks"])

    @staticmethod
    def get_num_gpus() -> int:
        """The GPUs of one node."""
        slots: int = plan(["true"])["hosts"][0]["slots"]
        return slots

    @staticmethod
    def get_num_cores() -> int:
        """The cores of one node."""
        return _lsf_node.get_num_cores()

    @staticmethod
    def get_num_threads() -> int:
        """The hardware threads of one core of a node."""
        return _lsf_node.get_num_threads()

    @staticmethod
    def get_allocation_info() -> dict[str, str | list[str]]:
        """The allocation of the job: texts by name, and lists such as compute_nodes."""
        return _lsf_node.get_allocation_info()
