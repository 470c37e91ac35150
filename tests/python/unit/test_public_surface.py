"""The names, parameters and defaults that programs rely on; drift shows here.

After a change that is meant: python tests/python/unit/test_public_surface.py > .../public_surface.txt
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
from pathlib import Path

SNAPSHOT = Path(__file__).with_name("public_surface.txt")
MODULES = [
    "horovod",
    "horovod.common.basics",
    "horovod.common.elastic",
    "horovod.common.exceptions",
    "horovod.common.process_sets",
    "horovod.common.util",
    "horovod.data",
    "horovod.runner",
    "horovod.runner.common.service.compute_service",
    "horovod.runner.common.service.task_service",
    "horovod.runner.common.util.address",
    "horovod.runner.common.util.codec",
    "horovod.runner.common.util.config_parser",
    "horovod.runner.common.util.env",
    "horovod.runner.common.util.host_hash",
    "horovod.runner.common.util.hosts",
    "horovod.runner.common.util.network",
    "horovod.runner.common.util.safe_shell_exec",
    "horovod.runner.common.util.secret",
    "horovod.runner.common.util.settings",
    "horovod.runner.common.util.timeout",
    "horovod.runner.common.util.tiny_shell_exec",
    "horovod.runner.elastic.discovery",
    "horovod.runner.elastic.driver",
    "horovod.runner.elastic.registration",
    "horovod.runner.elastic.rendezvous",
    "horovod.runner.elastic.settings",
    "horovod.runner.elastic.worker",
    "horovod.runner.gloo_run",
    "horovod.runner.http.http_client",
    "horovod.runner.http.http_server",
    "horovod.runner.js_run",
    "horovod.runner.launch",
    "horovod.runner.mpi_run",
    "horovod.runner.util.cache",
    "horovod.runner.util.lsf",
    "horovod.runner.util.network",
    "horovod.runner.util.remote",
    "horovod.runner.util.streams",
    "horovod.runner.util.threads",
    "horovod.spark",
    "horovod.spark.runner",
    "horovod.spark.task",
    "horovod.torch",
    "horovod.torch.compression",
    "horovod.torch.elastic",
    "horovod.torch.elastic.state",
    "horovod.torch.functions",
    "horovod.torch.mpi_ops",
]


def _parameters(entry: object) -> str:
    signature = inspect.signature(entry)  # type: ignore[arg-type]
    shown = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty))


def _lines_of_class(name: str, entry: type) -> list[str]:
    bases = ", ".join(base.__name__ for base in entry.__bases__)
    lines = [f"class {name}({bases})"]
    own = {key: value for key, value in vars(entry).items() if not key.startswith("_") or key == "__init__"}
    for key in sorted(own):
        value = inspect.getattr_static(entry, key)
        value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        lines.append(f"{name}.{key}{_parameters(value)}" if inspect.isfunction(value) else f"{name}.{key}")
    return lines


def _lines(module_name: str) -> list[str]:
    module = importlib.import_module(module_name)
    public = getattr(module, "__all__", None)
    if public is None:
        public = [
            key
            for key, value in vars(module).items()
            if not key.startswith("_") and getattr(value, "__module__", None) == module_name
        ]
    lines = []
    for key in sorted(public):
        value = getattr(module, key)
        name = f"{module_name}.{key}"
        if inspect.isclass(value):
            lines += _lines_of_class(name, value)
        elif callable(value):
            lines.append(f"{name}{_parameters(value)}")
        else:
            shown = f" = {value!r}" if isinstance(value, (int, list)) else ""
            lines.append(f"{name}{shown}")
    return lines


def surface() -> str:
    """Describe everything public, one line each."""
    text = "\n".join(line for module in MODULES for line in _lines(module)) + "\n"
    text = text.replace("<class 'horovod.torch.compression.NoneCompressor'>", "Compression.none")
    return re.sub(r"ProcessSet\(process_set_id=0, [^)]*\)", "global_process_set", text)


def test_nothing_has_drifted() -> None:
    before, now = SNAPSHOT.read_text().splitlines(), surface().splitlines()
    drift = difflib.unified_diff(before, now, SNAPSHOT.name, "now", lineterm="", n=0)
    assert list(drift) == []


if __name__ == "__main__":
    sys.stdout.write(surface())
