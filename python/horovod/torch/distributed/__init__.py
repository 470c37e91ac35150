"""The torch.distributed backend "horovod": DDP, FSDP, DTensor and the rest on this core.

    import horovod.torch  # or horovod.torch.distributed
    torch.distributed.init_process_group("horovod")

The default group is the running job, which is started if it is not running yet; other groups are
sets that only their members know. `init_method="horovod://"` needs no address at all: the job itself
brings the processes together. Under horovodrun that is also what the default `env://` falls back to.
"""

from horovod._torch_backend import BACKEND_NAME, is_available, register

__all__ = ["BACKEND_NAME", "is_available", "register"]

register()
