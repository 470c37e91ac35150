"""Writes docs/torch/api.md from the docstrings of horovod.torch; --check fails if it would change."""

# ruff: noqa: INP001 - a program, no package

from __future__ import annotations

import argparse
import inspect
import re
import sys
from pathlib import Path

import horovod.torch as hvd
from horovod.torch.optimizer import _DistributedOptimizer

PAGE = Path(__file__).with_name("torch") / "api.md"

SECTIONS = {
    "The job": """init shutdown is_initialized rank size local_rank local_size cross_rank cross_size
        is_homogeneous start_timeline stop_timeline gradient_schedule tune_allocator""",
    "Training": """DistributedOptimizer ShardedOptimizer SyncBatchNorm broadcast_parameters
        broadcast_optimizer_state broadcast_object allgather_object""",
    "Allreduce": """allreduce allreduce_ allreduce_async allreduce_async_ grouped_allreduce grouped_allreduce_
        grouped_allreduce_async grouped_allreduce_async_ sparse_allreduce_async""",
    "Other operations": """allgather allgather_async grouped_allgather grouped_allgather_async broadcast
        broadcast_ broadcast_async broadcast_async_ alltoall alltoall_async reducescatter reducescatter_async
        grouped_reducescatter grouped_reducescatter_async barrier join poll synchronize""",
    "Process sets": "ProcessSet add_process_set remove_process_set",
    "What this build has": """mpi_built mpi_enabled mpi_threads_supported gloo_built gloo_enabled nccl_built
        cuda_built rocm_built ccl_built ddl_built""",
    "Exceptions": "HorovodInternalError",
}
# Shown in one table instead: values, and names that hold others.
VALUES = {
    "Average": "`op`: the sum divided by the size of the process set",
    "Sum": "`op`: the sum",
    "Min": "`op`: the least",
    "Max": "`op`: the greatest",
    "Product": "`op`: the product",
    "Adasum": "`op`: adds what is orthogonal, averages what is parallel",
    "Compression": "has `none`, `fp16` and `bf16`: [compression.md](compression.md)",
    "global_process_set": "the process set of all ranks",
    "distributed": "the backend of torch.distributed: [distributed-backend.md](distributed-backend.md)",
    "elastic": "module with `ElasticSampler`: [objects-and-state.md](objects-and-state.md)",
}
# How defaults are written where their repr says something else.
SPELLED = {id(hvd.global_process_set): "global_process_set", id(hvd.Compression.none): "Compression.none"}

# What the functions return that stand for classes.
CLASSES = {"DistributedOptimizer": _DistributedOptimizer}

HEAD = """# API of `horovod.torch`

Written by `docs/generate_torch_api.py` from the docstrings; do not edit.
The other pages of this folder explain.
"""


def signature(name: str, value: object) -> str:
    """The call as one would write it: names and defaults, without types."""
    parts: list[str] = []
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return name
    is_keyword = False
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            parts.append("*")
        is_keyword = is_keyword or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        parts.append(f"{prefix}{parameter.name}{default_text(parameter)}")
    return f"{name}({', '.join(parts)})"


def default_text(parameter: inspect.Parameter) -> str:
    """The default as one would write it."""
    default = parameter.default
    if default is parameter.empty:
        return ""
    if parameter.name == "op" and default == hvd.Average:
        return "=Average"
    return f"={SPELLED.get(id(default), repr(default))}"


def text(docstring: str | None) -> str:
    """A docstring as Markdown: literal blocks become code, arguments a list."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    result: list[str] = []
    is_list = False
    for line in lines:
        if line == "Arguments:":
            is_list = True
            result += [line, ""]
        elif is_list and re.match(r"    \w+: ", line):
            argument, _, rest = line.strip().partition(": ")
            result.append(f"- `{argument}`: {rest}")
        elif is_list and line.startswith("    "):
            result.append(f"  {line.strip()}")
        elif line.strip() != "::":
            result.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(result)).strip()


def method_lines(owner: type) -> list[str]:
    """The public methods and properties that a class defines itself."""
    lines = []
    for name, member in vars(owner).items():
        function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if name.startswith("_") or not (inspect.isfunction(function) or isinstance(member, property)):
            continue
        call = name if isinstance(member, property) else signature(name, function)
        call = re.sub(r"\(self(, )?", "(", call)
        summary = text(inspect.getdoc(member)).split("\n\n")[0].replace("\n", " ")
        lines.append(f"- `{call}`: {summary}")
    return lines


def page() -> str:
    """The whole page."""
    listed = [name for names in SECTIONS.values() for name in names.split()]
    missing = set(hvd.__all__) ^ {*listed, *VALUES}
    if missing:
        message = f"generate_torch_api: listed here or public, but not both: {', '.join(sorted(missing))}"
        raise SystemExit(message)
    rows = [f"| `{name}` | {what} |" for name, what in VALUES.items()]
    blocks = [HEAD, "\n".join(["| Name | |", "|---|---|", *rows])]
    for title, names in SECTIONS.items():
        blocks.append(f"## {title}")
        for name in names.split():
            value = getattr(hvd, name)
            blocks += [f"### `{name}`", f"```\n{signature(name, value)}\n```", text(value.__doc__)]
            owner = CLASSES.get(name, value)
            if inspect.isclass(owner) and (methods := method_lines(owner)):
                blocks += ["Members:", "\n".join(methods)]
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page would change")
    if not parser.parse_args().check:
        PAGE.write_text(page())
        return 0
    if not PAGE.exists() or PAGE.read_text() != page():
        sys.stderr.write(f"{PAGE} is not up to date: run python {Path(__file__).name}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
