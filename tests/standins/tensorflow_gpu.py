"""Puts the stand-in GPUs under the CPU build of TensorFlow, for programs that tests start.

TensorFlow takes devices from plug-ins; `use()` gives it one whose devices are those of the stand-in driver,
before TensorFlow has looked for devices. The plug-in is made for the release that is installed, once:
`python tensorflow_gpu.py` makes it and prints where it is.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import subprocess
from pathlib import Path

from torch_cuda import HERE, ROOT, Driver, folder


def build() -> Path:
    """Make the plug-in if it is missing or older than its source."""
    package = Path(importlib.util.find_spec("tensorflow").origin).parent  # type: ignore[union-attr, arg-type]
    release = importlib.metadata.version("tensorflow-cpu")
    source, target = HERE / "tensorflow_gpu.cc", folder() / f"libtensorflow_gpu_standin_{release}.so"
    if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
        return target
    subprocess.run(
        ["g++", "-std=c++20", "-O1", "-fPIC", "-w", "-shared", f"-I{package / 'include'}", f"-I{ROOT}",
         str(source), "-o", str(target), f"-L{folder()}", "-lcuda_standin", f"-L{package}",
         "-l:libtensorflow_framework.so.2", f"-Wl,-rpath,{folder()}:{package}"], check=True,
    )  # fmt: skip
    return target


def use() -> Driver:
    """Give TensorFlow stand-in GPUs; returns the driver with its knobs and counters."""
    driver = Driver(ctypes.CDLL(str(folder() / "libcuda_standin.so"), mode=ctypes.RTLD_GLOBAL))
    from tensorflow.python.framework import load_library

    load_library.load_pluggable_device_library(str(build()))
    return driver


if __name__ == "__main__":
    print(build())
