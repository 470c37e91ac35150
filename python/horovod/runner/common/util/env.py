"""What the environment of a process says about its place in a job, and what of it others may get."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

KUBEFLOW_MPI_EXEC = "/etc/mpi/kubexec.sh"

_PAIRS = (
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)

# Of this login, or of this machine's devices: wrong on another host.
_NOT_EXPORTABLE = re.compile(r"BASH_FUNC_.*|OLDPWD|.*CUDA_VISIBLE_DEVICES|_HOROVOD_SECRET_KEY")


def is_exportable(name: str) -> bool:
    """Whether a variable is passed to workers of other hosts."""
    return _NOT_EXPORTABLE.fullmatch(name) is None


def is_kubeflow_mpi(environment: Mapping[str, str] | None = None) -> bool:
    """Whether this is a job of Kubeflow's MPI operator, whose hosts are reached by KUBEFLOW_MPI_EXEC."""
    variables = os.environ if environment is None else environment
    return variables.get("OMPI_MCA_plm_rsh_agent") == KUBEFLOW_MPI_EXEC


def get_env_rank_and_size(environment: Mapping[str, str] | None = None) -> tuple[int, int]:
    """Rank and size from horovodrun, Open MPI or PMI; (0, 1) outside of a job."""
    variables = os.environ if environment is None else environment
    for rank_name, size_name in _PAIRS:
        rank, size = variables.get(rank_name), variables.get(size_name)
        if rank is not None and size is not None:
            return int(rank), int(size)
        if rank is not None or size is not None:
            found, missing = (rank_name, size_name) if rank is not None else (size_name, rank_name)
            message = f"{found} is set but {missing} is not; a launcher sets both"
            raise RuntimeError(message)
    return 0, 1
