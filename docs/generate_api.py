"""Writes docs/*/api.md from the docstrings of the front ends; --check fails if a page would change."""

# ruff: noqa: INP001 - a program, no package

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from api_sources import Definition, find, functions_of, public_names

FOLDER = Path(__file__).parent

SECTIONS = {
    "The job": """init shutdown is_initialized rank size local_rank local_size cross_rank cross_size
        is_homogeneous start_timeline stop_timeline gradient_schedule tune_allocator""",
    "Training": """DistributedOptimizer PartialDistributedOptimizer ShardedOptimizer DistributedTrainer
        DistributedGradientTape PartialDistributedGradientTape SyncBatchNorm SyncBatchNormalization grad
        value_and_grad broadcast_parameters broadcast_optimizer_state broadcast_variables
        broadcast_global_variables BroadcastGlobalVariablesHook broadcast_object broadcast_object_fn
        allgather_object metric_average load_model""",
    "Allreduce": """allreduce allreduce_ allreduce_async allreduce_async_ grouped_allreduce grouped_allreduce_
        grouped_allreduce_async grouped_allreduce_async_ sparse_allreduce_async""",
    "Other operations": """allgather allgather_async grouped_allgather grouped_allgather_async broadcast
        broadcast_ broadcast_async broadcast_async_ alltoall alltoall_async reducescatter reducescatter_async
        grouped_reducescatter grouped_reducescatter_async barrier join poll synchronize""",
    "Inside a graph": "rank_op local_rank_op size_op local_size_op process_set_included_op",
    "Process sets": "ProcessSet add_process_set remove_process_set",
    "What this build has": """mpi_built mpi_enabled mpi_threads_supported gloo_built gloo_enabled nccl_built
        cuda_built rocm_built ccl_built ddl_built sycl_built gpu_available check_num_rank_power_of_2""",
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
    "Compression": "how floats travel; has `none`, `fp16` and `bf16`",
    "global_process_set": "the process set of all ranks",
    "distributed": "the backend of torch.distributed: [distributed-backend.md](distributed-backend.md)",
    "elastic": "elastic training: [elastic-training.md](../elastic-training.md)",
    "callbacks": "for `model.fit`, below",
    "handle_average_backwards_compatibility": "`(op, average)` to `op`, for wrappers of old programs",
}
KERAS_STATES = "KerasState CommitStateCallback UpdateBatchStateCallback UpdateEpochStateCallback run"


@dataclass(frozen=True, slots=True)
class Page:
    """A front end. `more`: names of other modules, by heading; `members`: classes behind functions."""

    folder: str
    module: str
    more: dict[str, tuple[str, str]] = field(default_factory=dict)
    members: dict[str, tuple[str, str]] = field(default_factory=dict)


PAGES = [
    Page(
        "torch",
        "horovod.torch",
        {"Elastic training": ("horovod.torch.elastic", "run TorchState ElasticSampler")},
        {"DistributedOptimizer": ("horovod.torch.optimizer", "_DistributedOptimizer")},
    ),
    Page(
        "tensorflow",
        "horovod.tensorflow",
        {"Elastic training": ("horovod.tensorflow.elastic", "run TensorFlowState TensorFlowKerasState")},
    ),
    Page(
        "keras",
        "horovod.keras",
        {
            "Callbacks": (
                "horovod.keras.callbacks",
                """BroadcastGlobalVariablesCallback MetricAverageCallback LearningRateWarmupCallback
                LearningRateScheduleCallback BestModelCheckpoint""",
            ),
            "Elastic training": ("horovod.keras.elastic", KERAS_STATES),
            "`horovod.tensorflow.keras`: the same names, with these differences": (
                "horovod.tensorflow.keras",
                "DistributedOptimizer allreduce ProcessSet add_process_set remove_process_set",
            ),
        },
    ),
    Page("jax", "horovod.jax", {"Elastic training": ("horovod.jax.elastic", "run")}),
    Page("mxnet", "horovod.mxnet"),
]

HEAD = """# API of `{module}`

Written by `docs/generate_api.py` from the docstrings; do not edit.
The other pages explain: [all documentation](../README.md).
"""


def parameters(function: ast.FunctionDef) -> list[tuple[str, ast.expr | None]]:
    """Return names, with their stars, and defaults; a lone star stands before keyword arguments."""
    given = function.args
    first = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(first) - len(given.defaults))
    found = [(one.arg, value) for one, value in zip(first, [*defaults, *given.defaults], strict=True)]
    found = [pair for pair in found if pair[0] not in {"self", "cls"}]
    if given.vararg:
        found.append((f"*{given.vararg.arg}", None))
    elif given.kwonlyargs:
        found.append(("*", None))
    found += [(one.arg, value) for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return [*found, *([(f"**{given.kwarg.arg}", None)] if given.kwarg else [])]


def signature(name: str, function: ast.FunctionDef | None) -> str:
    """Return the call as one would write it: names and defaults, without types."""
    if function is None:
        return name
    parts = [one if value is None else f"{one}={default(value)}" for one, value in parameters(function)]
    return f"{name}({', '.join(parts)})"


def default(value: ast.expr) -> str:
    """Return a default as a user would write it."""
    text = ast.unparse(value).replace("'", '"')
    return "Average" if text.endswith("AVERAGE") else text


def text(docstring: str) -> str:
    """Return a docstring as Markdown: literal blocks become code, arguments and exceptions lists."""
    result: list[str] = []
    is_list = False
    for line in inspect.cleandoc(docstring).splitlines():
        if line in {"Arguments:", "Raises:"}:
            is_list = True
            result += [line, ""]
        elif is_list and re.match(r"    [\w.*]+: ", line):
            argument, _, rest = line.strip().partition(": ")
            result.append(f"- `{argument}`: {rest}")
        elif is_list and line.startswith("    "):
            result.append(f"  {line.strip()}")
        elif line.strip() != "::":
            result.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(result)).strip()


def undescribed(definition: Definition) -> list[str]:
    """Return the parameters that the docstring does not describe."""
    names = [name for name, _ in parameters(definition.call)] if definition.call else []
    described = re.findall(r"^    ([\w*]+): ", definition.docstring, re.MULTILINE)
    return [name for name in names if name.strip("*") and name not in described and not name.startswith("**")]


def member_lines(node: ast.ClassDef) -> list[str]:
    """Return a line for each public method and property."""
    lines = []
    for member in functions_of(node):
        decorators = [ast.unparse(one) for one in member.decorator_list]
        if member.name.startswith("_") or any(one.endswith(".setter") for one in decorators):
            continue
        call = member.name if "property" in decorators else signature(member.name, member)
        summary = text(ast.get_docstring(member) or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"- `{call}`: {summary}")
    return lines


def entry(module: str, name: str, owner: Definition | None) -> list[str]:
    """Return the blocks of one name."""
    definition = find(module, name)
    if missing := undescribed(definition):
        message = f"{definition.module}.{name}: the docstring does not describe {', '.join(missing)}"
        raise SystemExit(message)
    blocks = [f"### `{name}`", f"```\n{signature(name, definition.call)}\n```", text(definition.docstring)]
    node = (owner or definition).node
    if isinstance(node, ast.ClassDef) and (members := member_lines(node)):
        blocks += ["Members:", "\n".join(members)]
    return blocks


def contents(page: Page) -> str:
    """Return a whole page."""
    public = public_names(page.module)
    listed = [name for names in SECTIONS.values() for name in names.split()]
    if unknown := set(public) - {*listed, *VALUES}:
        message = f"{page.module}: public, but in no section: {', '.join(sorted(unknown))}"
        raise SystemExit(message)
    rows = [f"| `{name}` | {what} |" for name, what in VALUES.items() if name in public]
    blocks = [HEAD.format(module=page.module), "\n".join(["| Name | |", "|---|---|", *rows])]
    wanted = {
        title: (page.module, [name for name in names.split() if name in public])
        for title, names in SECTIONS.items()
    }
    wanted |= {title: (module, names.split()) for title, (module, names) in page.more.items()}
    for title, (module, names) in wanted.items():
        blocks += [f"## {title}"] if names else []
        for name in names:
            owner = find(*page.members[name]) if name in page.members and module == page.module else None
            blocks += entry(module, name, owner)
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page would change")
    check = parser.parse_args().check
    stale = 0
    for page in PAGES:
        path = FOLDER / page.folder / "api.md"
        if not check:
            path.write_text(contents(page))
        elif not path.exists() or path.read_text() != contents(page):
            sys.stderr.write(f"{path} is not up to date: run python {Path(__file__).name}\n")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
