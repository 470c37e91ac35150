"""The measurements on stand-in GPUs. Every rank runs them; the slowest one counts."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from benchlib.cases import added, make_case, taken
from benchlib.contest import Round
from benchlib.readings import CaseReadings
from benchlib.world import World

import horovod.torch as hvd
from horovod._core import _native
from horovod._core.codes import FLOAT32, SUM
from horovod._core.process_sets import global_process_set
from horovod._core.submit import Reduction, TensorView, allreduce

from .budget import BACKWARD_SECONDS, GRADIENTS, STAGED_BYTES

LARGE = 1 << 16  # elements: small ones in host memory are summed by the thread that submits them


def _place() -> tuple[World, torch.device]:
    hvd.init()
    return World(), torch.device("cuda", hvd.local_rank())


def _round(world: World, seconds: dict[str, float]) -> Round:
    return Round({name: world.largest(value) for name, value in seconds.items()}, 0.0, 0.0, 0.0)


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _submit_all(tensors: list[torch.Tensor], names: list[str]) -> tuple[float, list[int]]:
    """Hand tensors to the core; returns the seconds that one takes of this thread, and the handles.

    Not by the clock: a thread that a submission wakes may take the core of the one that submits.
    """
    views = [
        TensorView(t.data_ptr(), FLOAT32, t.shape, t, t.get_device() if t.is_cuda else -1) for t in tensors
    ]
    reduction = Reduction(op=SUM)
    handles = []
    start = time.thread_time()
    for view, name in zip(views, names, strict=True):
        handles.append(allreduce(view, view.address, name, reduction, global_process_set))
    return (time.thread_time() - start) / len(tensors), handles


def measure_submission(driver: Any, rounds: int) -> list[CaseReadings]:
    """Compare submissions of tensors in host memory and on the device; nobody waits in between."""
    del driver
    world, device = _place()
    everywhere = {
        "host": [torch.zeros(LARGE) for _ in range(GRADIENTS)],
        "device": [torch.zeros(LARGE, device=device) for _ in range(GRADIENTS)],
    }
    names = {kind: [f"{kind}.{i}" for i in range(GRADIENTS)] for kind in everywhere}
    done = []
    for number in range(-2, rounds):
        seconds = {}
        for kind, tensors in everywhere.items():
            world.barrier()
            seconds[kind], handles = _submit_all(tensors, names[kind])
            _native.wait_many(handles, None)
            for handle in handles:
                _native.release(handle)
        if number >= 0:
            done.append(_round(world, seconds))
    name = f"np={world.size} submission: beyond that of host memory"
    return [make_case(name, "us", world.size, done, [added("ours", "device", "host", "horovod")])]


class _Nothing(torch.optim.Optimizer):
    """Leaves the parameters as they are: what remains of step() is Horovod's."""

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        del closure


def measure_step(driver: Any, rounds: int) -> list[CaseReadings]:
    """Time step() where all gradients have been averaged before."""
    del driver
    world, device = _place()
    parameters = [torch.nn.Parameter(torch.zeros(100, device=device)) for _ in range(GRADIENTS)]
    named = [(f"p{i}", parameter) for i, parameter in enumerate(parameters)]
    optimizer = hvd.DistributedOptimizer(_Nothing(parameters, {}), named_parameters=named)
    done = []
    for number in range(-2, rounds):
        for parameter in parameters:
            parameter.grad = None
        torch.cat([parameter.flatten() for parameter in parameters]).sum().backward()
        time.sleep(0.05)
        world.barrier()
        seconds = {"step": _seconds(optimizer.step)}
        if number >= 0:
            done.append(_round(world, seconds))
    name = f"np={world.size} step: {GRADIENTS} parameters"
    return [make_case(name, "ms", world.size, done, [taken("ours", "step", "horovod")])]


def _expect(code: int) -> None:
    if code != 0:
        message = f"the stand-in of the driver says {code}"
        raise RuntimeError(message)


def _end_of(driver: Any, stream: int) -> tuple[threading.Thread, list[float]]:
    """Note the time at which a stream has got here."""
    event = ctypes.c_void_p()
    library = driver.library
    context = ctypes.c_void_p()
    library.cuDevicePrimaryCtxRetain(ctypes.byref(context), hvd.local_rank())
    library.cuCtxPushCurrent_v2(context)
    _expect(library.cuEventCreate(ctypes.byref(event), 2))
    _expect(library.cuEventRecord(event, ctypes.c_void_p(stream)))
    library.cuCtxPopCurrent_v2(None)
    seen: list[float] = []

    def wait() -> None:
        library.cuEventSynchronize(event)
        seen.append(time.perf_counter())
        library.cuEventDestroy_v2(event)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, seen


def measure_overlap(driver: Any, rounds: int) -> list[CaseReadings]:
    """Time what is left after the last gradient of a stream that makes them one after the other."""
    world, device = _place()
    stream = torch.Stream(device=device)
    gradients = [torch.zeros(1000, device=device) for _ in range(GRADIENTS)]
    values = torch.zeros(1000)
    pause_us = round(BACKWARD_SECONDS / GRADIENTS * 1e6)
    done = []
    for number in range(-2, max(4, rounds // 4)):
        world.barrier()
        with stream:
            kept, handles = [], []
            for i, gradient in enumerate(gradients):
                kept.append(driver.copy_later(gradient, values, stream.stream_id, pause_us))
                handles.append(hvd.allreduce_async_(gradient, op=hvd.Sum, name=f"gradient.{i}"))
            thread, last = _end_of(driver, stream.stream_id)
            for handle in handles:
                hvd.synchronize(handle)
            end = time.perf_counter()
        thread.join()
        if number >= 0:
            done.append(_round(world, {"rest": end - last[0]}))
    name = f"np={world.size} overlap: after the last of {GRADIENTS} gradients"
    return [make_case(name, "ms", world.size, done, [taken("ours", "rest", "horovod")])]


def _memory_mib_per_second() -> int:
    source, target = torch.ones(STAGED_BYTES // 4), torch.zeros(STAGED_BYTES // 4)
    seconds = min(_seconds(lambda: target.copy_(source)) for _ in range(5))
    return round((STAGED_BYTES >> 20) / seconds)


def _contest(world: World, contestants: Mapping[str, Callable[[], object]], rounds: int) -> list[Round]:
    done = []
    for number in range(-1, rounds):
        seconds = {}
        for name, run in contestants.items():
            world.barrier()
            seconds[name] = _seconds(run)
        if number >= 0:
            done.append(_round(world, seconds))
    return done


def measure_staging(driver: Any, rounds: int) -> list[CaseReadings]:
    """Compare pipelined staging with copying all, reducing all and copying all back.

    Copies take as long as memory would, and no processor, like those of a GPU. A second case has copies that
    the two processors make, as many at a time as there are streams: there is nothing to overlap with.
    """
    world, device = _place()
    driver.set("copy_mib_per_s", round(world.from_first(float(_memory_mib_per_second()))))
    on_device = torch.zeros(STAGED_BYTES // 4, device=device)
    on_host = torch.zeros(STAGED_BYTES // 4)
    copy, wait = driver.library.cuMemcpyAsync, driver.library.cuStreamSynchronize
    stream = torch.Stream(device=device).stream_id

    def move(to: torch.Tensor, source: torch.Tensor) -> None:
        code = copy(
            ctypes.c_uint64(to.data_ptr()), ctypes.c_uint64(source.data_ptr()), ctypes.c_size_t(STAGED_BYTES),
            ctypes.c_void_p(stream),
        )  # fmt: skip
        _expect(code)
        wait(ctypes.c_void_p(stream))

    def one_after_the_other() -> None:
        move(on_host, on_device)
        hvd.allreduce_(on_host, op=hvd.Sum, name="host")
        move(on_device, on_host)

    contestants = {
        "pipelined": lambda: hvd.allreduce_(on_device, op=hvd.Sum, name="device"),
        "copy, reduce, copy": one_after_the_other,
    }
    columns = [taken("ours", "pipelined"), taken("peer", "copy, reduce, copy")]
    cases = []
    for title, copy_engine in (("staging", 1), ("staging, copies by the processor", 0)):
        driver.set("copy_engine", copy_engine)
        name = f"np={world.size} {title}: {STAGED_BYTES >> 20} MiB"
        cases.append(make_case(name, "ms", world.size, _contest(world, contestants, rounds), columns))
    return cases
