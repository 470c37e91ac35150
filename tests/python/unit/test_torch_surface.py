"""The signatures of the original, written down apart from ours."""

from __future__ import annotations

import inspect

import pytest

import horovod.torch as hvd
from horovod.torch import mpi_ops

PS = "process_set"
REDUCE = ["tensor", "average", "name", "op", "prescale_factor", "postscale_factor", PS]
COMPRESSED = [
    "tensor",
    "average",
    "name",
    "compression",
    "op",
    "prescale_factor",
    "postscale_factor",
    PS,
]
SCATTER = ["tensor", "name", "op", PS, "prescale_factor", "postscale_factor"]
SIGNATURES = {
    "allreduce": COMPRESSED,
    "allreduce_": REDUCE,
    "allreduce_async": REDUCE,
    "allreduce_async_": REDUCE,
    "grouped_allreduce": ["tensors", *COMPRESSED[1:]],
    "grouped_allreduce_": ["tensors", *REDUCE[1:]],
    "grouped_allreduce_async": ["tensors", *REDUCE[1:]],
    "grouped_allreduce_async_": ["tensors", *REDUCE[1:]],
    "sparse_allreduce_async": ["tensor", "name", "op", PS],
    "allgather": ["tensor", "name", PS],
    "allgather_async": ["tensor", "name", PS],
    "grouped_allgather": ["tensors", "name", PS],
    "grouped_allgather_async": ["tensors", "name", PS],
    "broadcast": ["tensor", "root_rank", "name", PS],
    "broadcast_": ["tensor", "root_rank", "name", PS],
    "broadcast_async": ["tensor", "root_rank", "name", PS],
    "broadcast_async_": ["tensor", "root_rank", "name", PS],
    "alltoall": ["tensor", "splits", "name", PS],
    "alltoall_async": ["tensor", "splits", "name", PS],
    "reducescatter": ["tensor", "name", "compression", *SCATTER[2:]],
    "reducescatter_async": SCATTER,
    "grouped_reducescatter": ["tensors", "name", "compression", *SCATTER[2:]],
    "grouped_reducescatter_async": ["tensors", *SCATTER[1:]],
    "poll": ["handle"],
    "synchronize": ["handle"],
    "join": ["device"],
    "barrier": [PS],
    "broadcast_parameters": ["params", "root_rank"],
    "broadcast_optimizer_state": ["optimizer", "root_rank", "model"],
    "broadcast_object": ["obj", "root_rank", "name", PS],
    "allgather_object": ["obj", "name"],
    "init": ["args", "kwargs"],
    "start_timeline": ["file_path", "mark_cycles"],
    "add_process_set": ["process_set"],
    "remove_process_set": ["process_set"],
    "DistributedOptimizer": [
        "optimizer",
        "named_parameters",
        "compression",
        "backward_passes_per_step",
        "op",
        "gradient_predivide_factor",
        "num_groups",
        "groups",
        "sparse_as_dense",
        PS,
    ],
    "SyncBatchNorm": ["num_features", "eps", "momentum", "affine", "track_running_stats"],
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_of_the_original(name: str) -> None:
    parameters = inspect.signature(getattr(hvd, name)).parameters.values()

    positional = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert positional == SIGNATURES[name]


def test_ops_are_in_mpi_ops_too() -> None:
    for name in (
        "rank",
        "size",
        "allreduce",
        "synchronize",
        "poll",
        "_basics",
        "_handle_map",
        "handle_average_backwards_compatibility",
        "is_homogeneous",
    ):
        assert hasattr(mpi_ops, name)


def test_reduce_ops_are_numbers() -> None:
    assert [hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product] == list(range(6))
