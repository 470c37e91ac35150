"""What tests of a cluster share: waiting for a state, a function that shows the places of all ranks."""

import time

SECONDS = 90


def wait_until(condition, complaint):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, complaint
        time.sleep(0.1)


def places():
    import horovod.torch as hvd

    hvd.init()
    everybody = hvd.allgather_object((hvd.rank(), hvd.local_rank(), hvd.cross_rank()))
    return hvd.size(), hvd.local_size(), hvd.cross_size(), everybody
