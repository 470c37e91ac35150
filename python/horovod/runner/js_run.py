"""jsrun, the launcher of LSF clusters; horovodrun composes its command line."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ._program import plan
from .mpi_run import run_settings, settings_words


def is_jsrun_installed() -> bool:
    """Whether jsrun is in PATH."""
    return shutil.which("jsrun") is not None


def generate_jsrun_rankfile(settings: Any, path: str | None = None) -> str:
    """Write the file that gives each rank its processors, and return where it is."""
    text = plan(["--jsrun", *settings_words(settings, None), "true"])["rank_file"]
    if path is None:
        descriptor, path = tempfile.mkstemp(prefix="horovod-rankfile-")
        os.close(descriptor)
    Path(path).write_text(text)
    return path


def js_run(
    settings: Any,
    nics: set[str] | None,
    env: Mapping[str, str],
    command: Sequence[str],
    stdout: Any = None,
    stderr: Any = None,
) -> None:
    """Run the command under jsrun to its end; RuntimeError if that fails."""
    del stdout, stderr  # the output of the job is that of this process
    run_settings("--jsrun", settings, nics, env, command)
