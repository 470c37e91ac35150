"""Checks what the compiler does not see: directions of imports, sizes and cycles of folders, the map, locks.

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
FILES_TODAY: dict[str, int] = {}

MOST_FIELDS = 20
# Classes that had more when the rule came: they may shrink, not grow.
FIELDS_TODAY = {"Order": 31, "AgentSession": 22}

# A right that a thread must have is told to the compiler, not to the reader: HVD_REQUIRES(engine_role).
ROLE_IN_PROSE = re.compile(r"\bneeds?\s+(?:the\s+)?(?:engine\s+)?(?:role|submit\s+lock)\b", re.IGNORECASE)


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


def sources() -> Iterator[tuple[Path, str]]:
    """Return each source and header below src with its text."""
    for path in sorted((ROOT / "src").rglob("*.*")):
        if path.suffix in {".h", ".cc"}:
            yield path, path.read_text()


def prose_findings() -> Iterator[str]:
    """Look for comments that ask for a right which the compiler could check."""
    for path, text in sources():
        # A comment may say it across two lines.
        joined = re.sub(r"\n *// ?", lambda match: " " * len(match[0]), text)
        for match in ROLE_IN_PROSE.finditer(joined):
            place = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
            words = " ".join(match[0].split())
            yield f"{place}: '{words}' in a comment; say HVD_REQUIRES to the compiler"


def field_findings() -> Iterator[str]:
    """Count the fields of each class. Structs without functions of their own are tables, and may be long."""
    for path, text in sources():
        for name, count in fields_of(text):
            most = max(MOST_FIELDS, FIELDS_TODAY.get(name, 0))
            if count > most:
                place = path.relative_to(ROOT)
                yield f"{place}: class {name} has {count} fields, at most {most} are one thing; split it"


def fields_of(text: str) -> Iterator[tuple[str, int]]:
    """Return the classes in a source, and how many fields each has. Relies on clang-format."""
    for match in re.finditer(
        r"^( *)class (?:HVD_\w+(?:\([^)]*\))? )?(\w+)(?: final)?(?: :[^{;]*)? \{$", text, re.MULTILINE
    ):
        indent = match[1]
        end = text.index(f"\n{indent}}};", match.end())
        body = re.sub(r"//.*", "", text[match.end() : end])
        yield match[2], sum(fields_in(statement) for statement in statements_of(body))


def statements_of(body: str) -> Iterator[str]:
    """Return what stands directly in the body of a class, without the bodies inside it."""
    statement, depth = "", 0
    for letter in body:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth == 0 and letter in ";}":
            yield statement
            statement = ""
        elif depth == 0:
            statement += letter


NOT_A_FIELD = re.compile(r"\b(?:using|friend|static|typedef|enum|class|struct|template|operator|return)\b")


def fields_in(statement: str) -> int:
    """Return how many fields a statement of a class declares."""
    declaration = re.sub(r"\b(?:public|protected|private):", "", statement)
    declaration = re.sub(r"\bHVD_\w+\([^()]*\)", "", declaration)
    for _ in range(4):
        declaration = re.sub(r"<[^<>]*>", "", declaration)
    declaration = declaration.split("=")[0].strip()
    if (
        "(" in declaration
        or not re.search(r"\w+ +[*&]?\w+|[*&] ?\w+", declaration)
        or NOT_A_FIELD.search(declaration)
    ):
        return 0
    return 1 + declaration.count(",")


MAP = ROOT / "docs" / "architecture.md"


def modules_of_the_build() -> Iterator[tuple[str, str, set[str]]]:
    """Return kind, folder and allowed includes of each line hvd_module, hvd_jax_module, ... of the build."""
    text = (ROOT / "src" / "CMakeLists.txt").read_text()
    for kind, words in re.findall(r"^ *(hvd_(?:\w+_)?module)\(([^)]*)\)", text, re.MULTILINE):
        name, *allowed = words.split()
        yield kind, name, set(allowed)


def map_findings() -> Iterator[str]:
    """Compare the folders in docs/architecture.md and the READMEs with the table of the build."""
    text = MAP.read_text()
    shown = set(re.findall(r"^src/(\S+)", text, re.MULTILINE))
    built = {name for _, name, _ in modules_of_the_build()}
    for name in sorted(built ^ shown):
        where = "is missing" if name in built else "is no module of src/CMakeLists.txt"
        yield f"{MAP.relative_to(ROOT)}: src/{name} {where}"
    for kind, name, allowed in modules_of_the_build():
        readme = ROOT / "src" / name / "README.md"
        if kind != "hvd_module" or not allowed or not readme.exists():
            continue
        place = readme.relative_to(ROOT)
        said = re.search(r"May include[^`]*(`.*?)\.(?:\s|$)", readme.read_text(), re.DOTALL)
        if said is None:
            yield f"{place}: says nothing about what the folder may include"
            continue
        for other in sorted(allowed ^ set(re.findall(r"`([a-z_/]+)`", said[1]))):
            yield f"{place}: 'May include' {'lacks' if other in allowed else 'is wrong about'} {other}"


def lock_findings() -> Iterator[str]:
    """Look for mutexes and named threads that the lists in docs/architecture.md lack."""
    text = MAP.read_text()
    for path, source in sources():
        place = path.relative_to(ROOT)
        for name in re.findall(r'setname_np\([^"]*"([^"]+)"', source):
            if f"`{name}`" not in text:
                yield f"{place}: thread {name} is not in the list of {MAP.name}"
        for match in re.finditer(r"^( *)(?:mutable )?(?:std::m|M)utex (\w+);", source, re.MULTILINE):
            around = rf"^{match[1][2:]}(?:class|struct) (?:HVD_\w+(?:\([^)]*\))? )?(\w+)[^;{{]*\{{$"
            owner = re.findall(around, source[: match.start()], re.MULTILINE)[-1]
            if owner != "Mutex" and f"{owner}::{match[2].rstrip('_')}" not in text:
                yield f"{place}: {owner}::{match[2]} is not in the list of {MAP.name}"


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
    findings = [
        *python_findings(),
        *source_findings(),
        *size_findings(),
        *prose_findings(),
        *field_findings(),
        *map_findings(),
        *lock_findings(),
    ]
    sys.stdout.writelines(f"{finding}\n" for finding in findings)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
