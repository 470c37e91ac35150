"""Parameters and defaults that programs written for the original rely on."""

from __future__ import annotations

import inspect

import pytest
import tensorflow as tf
from tensorflow.python.framework import ops as tensorflow_ops

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
from horovod.tensorflow import mpi_ops
from horovod.tensorflow.data import compute_service, compute_worker

TENSORFLOW = {
    "allreduce": "tensor average=None device_dense='' device_sparse='' compression op=None "
    "prescale_factor=1.0 postscale_factor=1.0 name=None process_set ignore_name_scope=False",
    "grouped_allreduce": "tensors average=None device_dense='' device_sparse='' compression op=None "
    "prescale_factor=1.0 postscale_factor=1.0 process_set ignore_name_scope=False name=None",
    "reducescatter": "tensor device_dense='' compression op=0 name=None process_set ignore_name_scope=False "
    "prescale_factor=1.0 postscale_factor=1.0",
    "grouped_reducescatter": "tensors device_dense='' compression op=0 process_set prescale_factor=1.0 "
    "postscale_factor=1.0",
    "allgather": "tensor name=None ignore_name_scope=False process_set",
    "grouped_allgather": "tensors name=None ignore_name_scope=False process_set",
    "broadcast": "tensor root_rank name=None ignore_name_scope=False process_set",
    "broadcast_": "variables root_rank name=None process_set",
    "alltoall": "tensor splits=None name=None ignore_name_scope=False process_set",
    "join": "",
    "size_op": "process_set_id=0 name=None",
    "process_set_included_op": "process_set_id=0 name=None",
    "rank_op": "name=None",
    "broadcast_variables": "variables root_rank process_set inplace=False",
    "broadcast_global_variables": "root_rank",
    "allgather_object": "obj session=None name=None process_set",
    "broadcast_object_fn": "root_rank=0 session=None name=None process_set",
    "BroadcastGlobalVariablesHook": "root_rank device=''",
    "DistributedOptimizer": "optimizer name=None use_locking=False device_dense='' device_sparse='' "
    "compression sparse_as_dense=False backward_passes_per_step=1 op=0 gradient_predivide_factor=1.0 "
    "average_aggregated_gradients=False num_groups=0 groups=None process_set scale_local_gradients=True",
    "DistributedGradientTape": "gradtape device_dense='' device_sparse='' compression sparse_as_dense=False "
    "op=0 gradient_predivide_factor=1.0 num_groups=0 groups=None process_set scale_local_gradients=True",
}
KERAS = {
    "DistributedOptimizer": "optimizer name=None device_dense='' device_sparse='' compression "
    "sparse_as_dense=False gradient_predivide_factor=1.0 op=0 backward_passes_per_step=1 "
    "average_aggregated_gradients=False num_groups=0 groups=None process_set scale_local_gradients=True",
    "allreduce": "value name=None average=None prescale_factor=1.0 postscale_factor=1.0 op=None compression",
    "allgather": "value name=None",
    "broadcast": "value root_rank name=None",
    "reducescatter": "value name=None op=0",
    "load_model": "filepath custom_optimizers=None custom_objects=None compression legacy_opts=False",
}
DATA = {
    compute_service.TfDataServiceConfig: "dispatchers workers_per_dispatcher dispatcher_side addresses key "
    "timeout=60",
    compute_service.TfDataServiceConfig.compute_client: "self verbose=1",
    compute_service.TfDataServiceConfig.read: "filename wait_for_file_creation=False",
    compute_service.tf_data_service: "compute_config rank",
    compute_service.send_to_data_service: "dataset compute_config rank size=None "
    "processing_mode='distributed_epoch' reuse_dataset=False round_robin=False",
    compute_service.compute_worker_fn: "compute_config",
    compute_worker.main: "dispatchers dispatcher_side configfile timeout",
}


def shown(function):
    """Names and defaults; of the compressor and the set the name alone."""
    parts = []
    for name, parameter in inspect.signature(function).parameters.items():
        plain = parameter.default is inspect.Parameter.empty or name in ("compression", "process_set")
        parts.append(name if plain else f"{name}={parameter.default!r}")
    return " ".join(parts)


@pytest.mark.parametrize("name", TENSORFLOW)
def test_parameters_of_horovod_tensorflow(name):
    assert shown(getattr(hvd, name)) == TENSORFLOW[name]


@pytest.mark.parametrize("name", KERAS)
def test_parameters_of_horovod_tensorflow_keras(name):
    assert shown(getattr(hvd_keras, name)) == KERAS[name]


def test_a_tape_keeps_the_name_of_its_class():
    assert type(hvd.DistributedGradientTape(tf.GradientTape())).__name__ == "GradientTape"


@pytest.mark.parametrize("function", DATA, ids=lambda function: function.__name__)
def test_parameters_of_horovod_tensorflow_data(function):
    assert shown(function) == DATA[function]


def test_everything_promised_is_there():
    for module in (hvd, hvd_keras):
        for name in module.__all__:
            assert hasattr(module, name)


def test_gradients_of_operations_have_their_old_names():
    operations = ["allreduce", "allgather", "alltoall", "broadcast", "reducescatter"]
    grouped = [f"grouped_{name}" for name in ("allreduce", "allgather", "reducescatter")]
    for name in [*operations, *grouped]:
        registered = "Horovod" + "".join(part.capitalize() for part in name.split("_"))
        function = getattr(mpi_ops, f"_{name}_grad")
        assert tensorflow_ops._gradient_registry.lookup(registered) is function
    assert list(inspect.signature(mpi_ops._alltoall_grad).parameters) == [
        "op",
        "grad_wrt_output",
        "grad_wrt_received_splits",
    ]
    assert mpi_ops._normalize_name("a/b:0") == "a_b_0"
