"""Finds what a public name of the package stands for, by reading its sources: no framework is needed."""

# ruff: noqa: INP001 - part of a program, no package

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[1] / "python"


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or a class, and the module that defines it."""

    module: str
    node: ast.FunctionDef | ast.ClassDef

    @property
    def call(self) -> ast.FunctionDef | None:
        """What is called: the function itself, or __init__ of the class if it has one."""
        if isinstance(self.node, ast.FunctionDef):
            return self.node
        return next((one for one in functions_of(self.node) if one.name == "__init__"), None)

    @property
    def docstring(self) -> str:
        """Its documentation, without indentation."""
        return ast.get_docstring(self.node) or ""


def functions_of(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Return the methods and properties that a class defines itself."""
    return [one for one in node.body if isinstance(one, ast.FunctionDef)]


def file_of(module: str) -> Path:
    """Return the file of a module."""
    path = PACKAGES.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse(file_of(module).read_text())


def public_names(module: str) -> list[str]:
    """Return `__all__` of a module."""
    for node in _tree(module).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    message = f"{module} has no __all__"
    raise LookupError(message)


def find(module: str, name: str) -> Definition:
    """Follow imports, and assignments of methods of the core's `basics`, to a definition."""
    for node in _tree(module).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return Definition(module, node)
        if isinstance(node, ast.Assign) and name in [getattr(one, "id", None) for one in node.targets]:
            return _method_of_basics(node.value, f"{module}.{name}")
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return find(_origin(module, node), alias.name)
    message = f"{module}: nothing defines {name}"
    raise LookupError(message)


def _method_of_basics(value: ast.expr, where: str) -> Definition:
    basics = find("horovod._core.basics", "HorovodBasics")
    if isinstance(value, ast.Attribute) and isinstance(basics.node, ast.ClassDef):
        for method in functions_of(basics.node):
            if method.name == value.attr:
                return Definition(basics.module, method)
    message = f"{where} is neither a function nor a class nor a method of HorovodBasics"
    raise LookupError(message)


def _origin(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    is_package = file_of(module).name == "__init__.py"
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])
