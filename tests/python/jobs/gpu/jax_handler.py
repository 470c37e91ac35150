"""The handler that XLA would call on CUDA, called with frames made by hand, on stand-in GPUs.

The CPU build of jaxlib runs no program on a GPU: this is what stands in for XLA. The layout of the frames is
that of src/bindings/jax/ffi.h, which was compared with XLA's headers.
"""

from __future__ import annotations

import ctypes as c
import os
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from horovod._core import _native, codes
from horovod._core.basics import basics

F32, EXECUTE, SCALAR, STRING, INT32 = 11, 3, 3, 4, 4
JOIN = 3  # HVD_JOIN
driver = c.CDLL(os.environ["HOROVOD_CUDA_LIB"], mode=c.RTLD_GLOBAL)


class Buffer(c.Structure):
    _fields_ = (("size", c.c_size_t), ("ext", c.c_void_p), ("dtype", c.c_int), ("data", c.c_void_p),
                ("rank", c.c_int64), ("dims", c.c_void_p))  # fmt: skip


class Span(c.Structure):
    _fields_ = (("data", c.c_char_p), ("size", c.c_size_t))


class Scalar(c.Structure):
    _fields_ = (("dtype", c.c_int), ("value", c.c_void_p))


class Lists(c.Structure):
    _fields_ = (("size", c.c_size_t), ("ext", c.c_void_p), ("count", c.c_int64), ("types", c.c_void_p),
                ("items", c.c_void_p))  # fmt: skip


class Attributes(c.Structure):
    _fields_ = (("size", c.c_size_t), ("ext", c.c_void_p), ("count", c.c_int64), ("types", c.c_void_p),
                ("names", c.c_void_p), ("values", c.c_void_p))  # fmt: skip


class Frame(c.Structure):
    _fields_ = (("size", c.c_size_t), ("ext", c.c_void_p), ("api", c.c_void_p), ("context", c.c_void_p),
                ("stage", c.c_int), ("args", Lists), ("results", Lists), ("attributes", Attributes),
                ("future", c.c_void_p))  # fmt: skip


class Question(c.Structure):
    """Arguments of Error_Create, Stream_Get and DeviceOrdinal_Get: the same at the front."""

    _fields_ = (("size", c.c_size_t), ("ext", c.c_void_p), ("first", c.c_void_p), ("second", c.c_void_p))


basics.init()
rank, size = basics.rank(), basics.size()
stream, context = c.c_void_p(), c.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(c.byref(context), rank) == 0
driver.cuCtxPushCurrent_v2(context)
assert driver.cuStreamCreateWithPriority(c.byref(stream), 1, 0) == 0
told: list[str] = []
Answer = c.CFUNCTYPE(c.c_void_p, c.POINTER(Question))


@Answer
def create_error(question: Any) -> int:
    told.append(c.string_at(question.contents.first).decode())
    return 1


@Answer
def get_stream(question: Any) -> None:
    question.contents.second = stream.value


@Answer
def get_device(question: Any) -> None:
    c.c_int32.from_address(c.addressof(question.contents) + Question.second.offset).value = rank


def make_api(length: int) -> Any:
    table = (c.c_uint64 * 24)()
    table[0] = length
    for offset, function in ((48, create_error), (80, get_stream), (184, get_device)):
        table[offset // 8] = c.cast(function, c.c_void_p).value
    return table


def on_gpu(values: Sequence[float]) -> tuple[int, Callable[[], list[float]]]:
    """Memory of the GPU that a stream fills later than a call would read it; and how to read it."""
    pointer, host = c.c_uint64(), array("f", values)
    assert driver.cuMemAlloc_v2(c.byref(pointer), c.c_size_t(4 * len(host))) == 0
    length = c.c_size_t(4 * len(host))
    libc = c.CDLL(None)
    driver.cuLaunchHostFunc(stream, c.cast(libc.usleep, c.c_void_p), c.c_void_p(50_000))
    driver.cuMemcpyAsync(pointer, c.c_uint64(host.buffer_info()[0]), length, stream)

    def read() -> list[float]:
        back = array("f", [0.0] * len(host))
        driver.cuMemcpyAsync(c.c_uint64(back.buffer_info()[0]), pointer, length, stream)
        driver.cuStreamSynchronize(stream)
        return list(back)

    kept.append(host)
    return pointer.value, read


kept: list[object] = []


def keep(thing: Any) -> int:
    """The address of something that lives on."""
    kept.append(thing)
    return c.addressof(thing)


def buffers(pointers: Sequence[int], count: int) -> Lists:
    dims = (c.c_int64 * 1)(count)
    made = [Buffer(c.sizeof(Buffer), None, F32, pointer, 1, keep(dims)) for pointer in pointers]
    items = (c.c_void_p * len(made))(*(keep(one) for one in made))
    return Lists(c.sizeof(Lists), None, len(made), None, keep(items))


def attributes(name: bytes, **numbers: int) -> Attributes:
    names, values, types = [b"name"], [keep(Span(name, len(name)))], [STRING]
    for key, number in numbers.items():
        names.append(key.encode())
        values.append(keep(Scalar(INT32, keep(c.c_int32(number)))))
        types.append(SCALAR)
    count = len(names)
    spans = (c.c_void_p * count)(*(keep(Span(text, len(text))) for text in names))
    return Attributes(
        c.sizeof(Attributes), None, count, keep((c.c_int * count)(*types)), keep(spans),
        keep((c.c_void_p * count)(*values)),
    )  # fmt: skip


handler = c.CDLL(str(Path(_native.library_path()).with_name("libhorovod_jax.so"))).hvd_jax_cuda
handler.restype = c.c_void_p


def call(api: Any, inputs: Lists, results: Lists, wish: Attributes) -> int | None:
    frame = Frame(c.sizeof(Frame), None, c.addressof(api), None, EXECUTE, inputs, results, wish, None)
    answer: int | None = handler(c.byref(frame))
    return answer


api = make_api(192)
total = float(sum(range(1, size + 1)))
for step in range(3):
    given, _ = on_gpu([rank + 1.0] * 1000)
    result, read = on_gpu([0.0] * 1000)
    wish = attributes(b"sum", kind=codes.ALLREDUCE, op=codes.SUM)
    assert call(api, buffers([given], 1000), buffers([result], 1000), wish) is None, told
    assert read() == [total] * 1000, (step, read()[:3])
given, _ = on_gpu([float(rank)] * 10)
result, read = on_gpu([0.0] * 10 * size)
wish = attributes(b"gathered", kind=codes.ALLGATHER)
assert call(api, buffers([given], 10), buffers([result], 10 * size), wish) is None, told
assert read() == [float(r) for r in range(size) for _ in range(10)]
assert call(api, buffers([], 0), buffers([result], 1), attributes(b"last", kind=JOIN)) == 1
assert "outside of jit" in told.pop()
wish = attributes(b"old", kind=codes.ALLREDUCE, op=codes.SUM)
assert call(make_api(176), buffers([given], 10), buffers([given], 10), wish) == 1
assert "newer" in told.pop()
# Ranks are done with it, and the stream was not told: an error of the program, not a wrong result.
driver.standin_fail(b"cuStreamWaitEvent", c.c_int64(3), 1)  # the core's, then those that wait for it
wish = attributes(b"unordered", kind=codes.ALLREDUCE, op=codes.SUM)
assert call(api, buffers([given], 10), buffers([result], 10), wish) == 1
assert "cuStreamWaitEvent" in told.pop()
_native.shutdown()
print("HANDLER RIGHT", rank)
