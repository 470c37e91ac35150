"""What tests of a cluster share: waiting for a state, a function that shows the places of all ranks."""

import time

SECONDS = 90


def wait_until(condition, complaint):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, complaint
        time.sleep(0.1)


def places():
    """Ask the core itself: importing a framework takes a worker seconds, and there are many workers."""
    from horovod._core.basics import basics
    from horovod._core.objects import allgather_object

    basics.init()
    mine = basics.rank(), basics.local_rank(), basics.cross_rank()
    return basics.size(), basics.local_size(), basics.cross_size(), allgather_object(mine)
