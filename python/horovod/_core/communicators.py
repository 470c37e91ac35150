"""Communicators of mpi4py, which is not imported here: only a program that has it can pass one."""

from __future__ import annotations

import sys


def is_communicator(value: object) -> bool:
    """Return whether this is a communicator of mpi4py."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and isinstance(value, mpi.Comm)


def comm_address(comm: object) -> int:
    """Return where mpi4py keeps the MPI_Comm. It moves no more while the object lives."""
    address: int = sys.modules["mpi4py.MPI"]._addressof(comm)  # noqa: SLF001 - made for this
    return address
