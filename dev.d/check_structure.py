"""Checks what the compiler does not see: directions of imports, cycles of folders, sizes of folders.

The tables below are the rule. An import inside a function is taken when the function runs: it may point up
where LATER says so.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "horovod"

# Parts of the package, lowest first, and the parts that each may import. A part is a folder or a file below
# python/horovod; a module belongs to the longest name that fits. "" is horovod/__init__.py, which needs the
# core alone.
MAY_IMPORT: dict[str, set[str]] = {
    "_core": set(),
    "": {"_core"},
    "common": {"_core"},
    "data": set(),
    "_torch_backend": set(),
    "runner": {"_core", "common"},
    "common.elastic": {"_core", "common", "runner"},
    "torch": {"_core", "_torch_backend", "common", "common.elastic"},
    "jax": {"_core", "common", "common.elastic"},
    "mxnet": {"_core", "common", "common.elastic"},
    "tensorflow": {"_core", "common", "common.elastic", "runner"},
    "_keras": {"_core", "common", "common.elastic", "jax", "tensorflow", "torch"},
    "tensorflow.keras": {"_core", "_keras", "tensorflow"},
    "keras": {"_core", "_keras"},
    "_cluster": {"", "_core", "common", "runner"},
    "ray": {"_cluster", "_core", "common", "runner"},
    "spark": {
        "",
        "_cluster",
        "_core",
        "common",
        "data",
        "keras",
        "runner",
        "tensorflow",
        "tensorflow.keras",
        "torch",
    },
}

# Imports inside functions that point up, with their reason.
LATER = {
    ("_torch_backend", "torch"): "torch calls it before a program imports horovod.torch, which may be never",
    (
        "tensorflow",
        "tensorflow.keras",
    ): "a Keras optimizer given to horovod.tensorflow is one for horovod.tensorflow.keras",
}

# Modules that import each other, with their reason.
CYCLES: dict[frozenset[str], str] = {
    frozenset(
        {"tensorflow._gradients", "tensorflow.mpi_ops"}
    ): "gradients are operations, and both are names of mpi_ops",
}

MOST_FILES = 40
# Folders that had more when the rule came: they may shrink, not grow.
FILES_TODAY = {"bench": 60, "src/net": 48, "tests/process": 50}


def part_of(module: str) -> str:
    """Return the part that a module, named from horovod on, belongs to."""
    name = module
    while name and name not in MAY_IMPORT:
        name = name.rpartition(".")[0]
    return name


def name_of(path: Path) -> str:
    """Return the module in a file, named from horovod on."""
    parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Imports(ast.NodeVisitor):
    """The modules of the package that one module imports, at once or later."""

    def __init__(self, path: Path, known: frozenset[str]) -> None:
        """Read a file."""
        self.now: list[tuple[int, str]] = []
        self.later: list[tuple[int, str]] = []
        self._depth = 0
        self._known = known
        module = name_of(path).split(".")
        self._package = module if path.name == "__init__.py" else module[:-1]
        self.visit(ast.parse(path.read_text(), str(path)))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Count imports in functions as later ones."""
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_If(self, node: ast.If) -> None:
        """Leave out what only type checkers read."""
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """Take `import horovod.x`."""
        for alias in node.names:
            if alias.name.split(".")[0] == "horovod":
                self._add(node.lineno, alias.name.removeprefix("horovod").lstrip("."))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Take `from horovod.x import y` and `from .x import y`, where y may be a module."""
        if node.level:
            base = [*self._package[: len(self._package) - node.level + 1], *(node.module or "").split(".")]
            source = ".".join(word for word in base if word)
        elif (node.module or "").split(".")[0] == "horovod":
            source = (node.module or "").removeprefix("horovod").lstrip(".")
        else:
            return
        for alias in node.names:
            inner = f"{source}.{alias.name}".lstrip(".")
            self._add(node.lineno, inner if inner in self._known else source)

    def _add(self, line: int, module: str) -> None:
        (self.later if self._depth else self.now).append((line, module))


def python_findings() -> Iterator[str]:
    """Look at the imports of the package."""
    paths = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
    known = frozenset(paths)
    imported: dict[str, set[str]] = {}
    for module, path in paths.items():
        imports = Imports(path, known)
        imported[module] = {target for _, target in imports.now if target in known}
        own = part_of(module)
        for now, found in ((True, imports.now), (False, imports.later)):
            for line, target in found:
                part = part_of(target)
                if part == own or part in MAY_IMPORT[own] or (not now and (own, part) in LATER):
                    continue
                place = f"{path.relative_to(ROOT)}:{line}"
                yield f"{place}: {own or 'horovod'} may not import {part or 'horovod'}"
    yield from cycles_in("horovod parts", MAY_IMPORT)
    for circle in circles(imported):
        if not any(circle <= allowed for allowed in CYCLES):
            yield f"modules import each other: {', '.join(sorted(circle))}"


def source_findings() -> Iterator[str]:
    """Look for folders of src that include each other, also inside one module of the build."""
    includes: dict[str, set[str]] = defaultdict(set)
    for path in sorted((ROOT / "src").rglob("*.*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        own = str(path.parent.relative_to(ROOT / "src"))
        for target in re.findall(r'^#include "([^"]+)/[^"/]+"', path.read_text(), re.MULTILINE):
            if target != own and (ROOT / "src" / target).is_dir():
                includes[own].add(target)
    yield from cycles_in("folders of src", includes)


def size_findings() -> Iterator[str]:
    """Count the files of each folder."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    counts = Counter(str(Path(name).parent) for name in listed.splitlines() if (ROOT / name).exists())
    for folder, count in sorted(counts.items()):
        most = max(MOST_FILES, FILES_TODAY.get(folder, 0))
        if count > most:
            yield f"{folder}: {count} files, at most {most} are clear to a reader; split it"


def cycles_in(what: str, graph: Mapping[str, set[str]]) -> Iterator[str]:
    """Name the parts that need each other."""
    for circle in circles(graph):
        yield f"{what} that need each other: {', '.join(sorted(circle))}"


def circles(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Return the groups of nodes that reach each other."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        todo = list(graph[start])
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo.extend(graph.get(node, ()))
        reach[start] = seen
    found: list[set[str]] = []
    for node in graph:
        circle = {other for other in reach[node] if node in reach.get(other, ())}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def main() -> int:
    """Print what breaks a rule."""
    findings = [*python_findings(), *source_findings(), *size_findings()]
    sys.stdout.writelines(f"{finding}\n" for finding in findings)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
