"""Puts the stand-in GPUs under the CPU build of PyTorch, for programs that tests start.

With HVD_GPU_HARDWARE=1 the program gets the GPUs of the machine instead: `use()` returns a driver without
knobs and counters, and what needs them is left out. HVD_GPU_HARDWARE=rehearsal is the same on stand-ins.

`use()` has to run before torch is imported. The library is made for the release of torch that is
installed, once: `python torch_cuda.py` makes it and prints where it is.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
_CUDA_DEVICE_TYPE = 1  # c10::DeviceType


def folder() -> Path:
    """Where the stand-ins were built."""
    return Path(os.environ.get("HVD_STANDINS", ROOT / "build" / "release" / "standins"))


def build() -> Path:
    """Make the library if it is missing or older than its source."""
    torch = Path(importlib.util.find_spec("torch").origin).parent  # type: ignore[union-attr, arg-type]
    source, target = HERE / "torch_cuda.cc", folder() / "libtorch_cuda_standin.so"
    if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
        return target
    compiler = ["ccache", "g++"] if Path("/usr/bin/ccache").exists() else ["g++"]
    includes = [torch / "include", torch / "include/torch/csrc/api/include", ROOT]
    unlinked = target.with_suffix(".o")
    subprocess.run(
        [*compiler, "-std=c++20", "-O1", "-fPIC", "-w", *(f"-I{path}" for path in includes), "-c",
         str(source), "-o", str(unlinked)], check=True,
    )  # fmt: skip
    subprocess.run(
        ["g++", "-shared", str(unlinked), "-o", str(target), f"-L{torch / 'lib'}", "-ltorch_cpu",
         "-lc10", f"-L{folder()}", "-lcuda_standin", f"-Wl,-rpath,{torch / 'lib'}:{folder()}"], check=True,
    )  # fmt: skip
    return target


class Driver:
    """The stand-in's driver, as the program under test sees it from Python."""

    is_standin = True

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.standin_get.restype = ctypes.c_int64

    def get(self, name: str) -> int:
        """Return a counter or a knob."""
        return int(self.library.standin_get(name.encode()))

    def set(self, name: str, value: int) -> None:
        """Turn a knob."""
        self.library.standin_set(name.encode(), ctypes.c_int64(value))

    def fail(self, function: str, nth: int, code: int) -> None:
        """Let the nth call of a function from now on return a code."""
        self.library.standin_fail(function.encode(), ctypes.c_int64(nth), code)

    def copy_later(self, tensor: Any, values: Any, stream: int, delay_us: int) -> object:
        """Let a stream sleep, then write into a tensor, without waiting; returns what must live on."""
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        libc = ctypes.CDLL(None)
        libc.usleep.argtypes = [ctypes.c_uint32]
        sleep = ctypes.cast(libc.usleep, kind)
        self.library.cuLaunchHostFunc(ctypes.c_void_p(stream), sleep, ctypes.c_void_p(delay_us))
        code = self.library.cuMemcpyAsync(
            ctypes.c_uint64(tensor.data_ptr()), ctypes.c_uint64(values.data_ptr()),
            ctypes.c_size_t(values.numel() * values.element_size()), ctypes.c_void_p(stream),
        )  # fmt: skip
        assert code == 0, code
        return (sleep, values)


class Hardware:
    """A driver that nobody can look into."""

    is_standin = False


def use() -> Any:
    """Give this process stand-in GPUs; before torch is imported."""
    kind = os.environ.get("HVD_GPU_HARDWARE", "")
    if kind != "1":
        driver = _use_standins()
    return Hardware() if kind else driver


def _use_standins() -> Driver:
    assert "torch" not in sys.modules, "the stand-in has to be there before torch"
    driver = Driver(ctypes.CDLL(str(folder() / "libcuda_standin.so"), mode=ctypes.RTLD_GLOBAL))
    spec = importlib.util.find_spec("torch")
    lib = Path(spec.origin).parent / "lib"  # type: ignore[union-attr, arg-type]
    for name in ("libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(lib / name), mode=ctypes.RTLD_GLOBAL)
    bridge = ctypes.CDLL(str(build()), mode=ctypes.RTLD_GLOBAL)
    bridge.standin_torch_current_stream.restype = ctypes.c_int64
    import torch

    class CurrentStream:
        def __init__(self, device: Any = None) -> None:
            index = torch.device(device).index if isinstance(device, (str, torch.device)) else device
            self.index = index or 0
            self.cuda_stream = bridge.standin_torch_current_stream(self.index)
            self.generic = torch.Stream(
                stream_id=self.cuda_stream, device_index=self.index, device_type=_CUDA_DEVICE_TYPE
            )

        def record_event(self) -> Any:
            event = torch.Event(device=f"cuda:{self.index}")
            event.record(self.generic)
            return event

        def wait_event(self, event: Any) -> None:
            self.generic.wait_event(event)

    torch.cuda._lazy_init = lambda: None
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: driver.get("devices")
    torch.cuda.current_stream = CurrentStream
    torch.cuda.stream = lambda stream: stream.generic
    torch.cuda.get_device_capability = lambda _=None: (8, 0)  # torch.distributed asks before a broadcast
    return driver


if __name__ == "__main__":
    print(build())
