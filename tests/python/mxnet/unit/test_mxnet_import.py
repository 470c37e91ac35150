"""What keeps MXNet from being imported is explained, and the package has the surface of the original."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import horovod.mxnet as hvd
from horovod.mxnet._framework import explanation, version_problem


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (AttributeError("module 'numpy' has no attribute 'bool'."), ["numpy==1.23.5", "numpy.bool = bool"]),
        (OSError("libquadmath.so.0: cannot open shared object file"), ["libquadmath0", "apt-get install"]),
        (OSError("libgomp.so.1: cannot open shared object file"), ["libgomp1"]),
        (ModuleNotFoundError("No module named 'mxnet'", name="mxnet"), ["mxnet==1.9.1", "not installed"]),
        (ModuleNotFoundError("No module named 'distutils'", name="distutils"), ["setuptools", "3.11"]),
        (OSError("wrong ELF class"), ["wrong ELF class", "mxnet==1.9.1"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_wrong_is_said_with_the_way_out(error, wanted):
    text = explanation(error)

    assert all(part in text for part in wanted)


def test_releases_that_cannot_work_are_refused():
    assert version_problem("1.9.1") is None
    assert "2.0.0" in version_problem("2.0.0")


def import_with(preparation: str) -> str:
    program = f"{preparation}\nimport horovod.mxnet"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


def test_a_numpy_without_bool_is_an_import_error_that_says_so():
    last = import_with(
        "import numpy\n"
        "def missing(name): raise AttributeError(f'module numpy has no attribute {name!r}')\n"
        "numpy.__dict__.pop('bool', None)\n"
        "numpy.__getattr__ = missing"
    )

    assert last.startswith("ImportError: horovod.mxnet: ")
    assert "numpy.bool = bool" in last


def test_a_missing_library_is_an_import_error_that_says_so():
    last = import_with(
        "import ctypes\n"
        "opened = ctypes.CDLL\n"
        "def refuse(name, *arguments, **options):\n"
        "    if name and 'libmxnet' in str(name):\n"
        "        raise OSError('libquadmath.so.0: cannot open shared object file')\n"
        "    return opened(name, *arguments, **options)\n"
        "ctypes.CDLL = refuse"
    )

    assert last.startswith("ImportError: horovod.mxnet: ")
    assert "libquadmath0" in last


FACTORS = "prescale_factor=1.0, postscale_factor=1.0"
SET = "process_set=ProcessSet"
REDUCTION = f"average=None, name=None, priority=0, {FACTORS}, {SET}, op=None"
SIGNATURES = {
    "allreduce": f"tensor, {REDUCTION}",
    "allreduce_": f"tensor, {REDUCTION}",
    "grouped_allreduce": f"tensors, {REDUCTION}",
    "grouped_allreduce_": f"tensors, {REDUCTION}",
    "allgather": f"tensor, name=None, priority=0, {SET}",
    "grouped_allgather": f"tensors, name=None, priority=0, {SET}",
    "broadcast": f"tensor, root_rank, name=None, priority=0, {SET}",
    "broadcast_": f"tensor, root_rank, name=None, priority=0, {SET}",
    "alltoall": f"tensor, splits=None, name=None, priority=0, {SET}",
    "reducescatter": f"tensor, op=0, name=None, priority=0, {SET}, {FACTORS}",
    "grouped_reducescatter": f"tensors, op=0, name=None, priority=0, {SET}, {FACTORS}",
    "broadcast_object": "obj, root_rank=0, name=None",
    "allgather_object": "obj, name=None",
    "broadcast_parameters": "params, root_rank=0, prefix=None",
    "DistributedOptimizer": f"optimizer, gradient_predivide_factor=1.0, num_groups=0, {SET}",
    "DistributedTrainer": (
        "params, optimizer, optimizer_params=None, compression=NoneCompressor, "
        f"gradient_predivide_factor=1.0, prefix=None, num_groups=0, {SET}"
    ),
}


def shown(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if default is inspect.Parameter.empty:
        return parameter.name
    if isinstance(default, hvd.ProcessSet):
        default = hvd.ProcessSet
    return f"{parameter.name}={default.__name__ if inspect.isclass(default) else default}"


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_those_of_the_original(name):
    parameters = inspect.signature(getattr(hvd, name)).parameters.values()

    assert ", ".join(map(shown, parameters)) == SIGNATURES[name]


def test_everything_that_is_listed_is_there():
    assert all(hasattr(hvd, name) for name in hvd.__all__)
    assert hvd.mpi_ops.MPI_MXNET_LIB_CTYPES.hvd_mxnet_push
