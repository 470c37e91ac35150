"""Jobs of IBM Spectrum LSF, as the launcher sees them."""

from __future__ import annotations

import os

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
