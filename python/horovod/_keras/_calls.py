"""The calls about the job, as both Keras front ends offer them."""

from horovod._core.basics import basics

ccl_built = basics.ccl_built
cross_rank = basics.cross_rank
cross_size = basics.cross_size
cuda_built = basics.cuda_built
ddl_built = basics.ddl_built
gloo_built = basics.gloo_built
gloo_enabled = basics.gloo_enabled
init = basics.init
is_initialized = basics.is_initialized
local_rank = basics.local_rank
local_size = basics.local_size
mpi_built = basics.mpi_built
mpi_enabled = basics.mpi_enabled
mpi_threads_supported = basics.mpi_threads_supported
nccl_built = basics.nccl_built
rank = basics.rank
rocm_built = basics.rocm_built
sycl_built = basics.sycl_built
shutdown = basics.shutdown
size = basics.size
start_timeline = basics.start_timeline
stop_timeline = basics.stop_timeline

__all__ = [
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
    "sycl_built",
]
