"""All measurements of the device path, as readings in a folder.

usage: python -m devicesbench --out FOLDER [--np N] [--quick] [--only PART ...]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from benchlib.parts import Part, launcher_of, parse_options, run_parts, suite_part

from .budget import GRADIENTS, TRANSFER_SECONDS

_ROOT: Final = Path(__file__).resolve().parents[3]
_STANDINS: Final = Path(os.environ.get("HVD_STANDINS", _ROOT / "build/release/standins"))
_MISSING: Final = "/nonexistent/libcuda.so.1"


def main() -> int:
    """Run the parts one after the other: stand-ins are set by the environment of a process."""
    options = parse_options("devicesbench")
    launcher = launcher_of(
        {
            "PYTHONPATH": f"{_ROOT / 'bench/python'}:{_ROOT / 'tests/standins'}",
            "HOROVOD_CUDA_LIB": str(_STANDINS / "libcuda_standin.so"),
            "HOROVOD_NCCL_LIB": str(_STANDINS / "libnccl_standin.so"),
            "HOROVOD_LOG_LEVEL": "error",
            "STANDIN_DEVICES": "8",
        }
    )
    transfer_us = str(round(TRANSFER_SECONDS / GRADIENTS * 1e6))

    def suite(name: str, **extra: str) -> Part:
        return suite_part(launcher, "devicesbench", name, options, extra=extra)

    parts = {
        "submission": suite("submission"),
        "step": suite("step"),
        "overlap": suite("overlap", STANDIN_NCCL_TRANSFER_US=transfer_us),
        "staging": suite("staging", HOROVOD_NCCL_LIB="/nonexistent/libnccl.so.2"),
        "no driver": suite("absence", HOROVOD_CUDA_LIB=_MISSING),
    }
    return run_parts("devices", parts, options)


if __name__ == "__main__":
    sys.exit(main())
