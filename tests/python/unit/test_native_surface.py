"""The compiled module and its stub say the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import horovod._core
from horovod._core import _native

# The stub lies beside the package's sources, wherever the compiled file is.
STUB = next(stub for folder in horovod._core.__path__ if (stub := Path(folder, "_native.pyi")).exists())
TREE = ast.parse(STUB.read_text())
FUNCTIONS = {node.name: node for node in TREE.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}


def test_every_name_of_the_stub_exists_and_vice_versa():
    public = {name for name in dir(_native) if not name.startswith("_")}

    assert public == FUNCTIONS.keys() | CLASSES.keys()


POSITIONAL = [name for name, node in FUNCTIONS.items() if not node.args.kwonlyargs]
CONSTRUCTORS = {
    name: method
    for name, node in CLASSES.items()
    for method in node.body
    if isinstance(method, ast.FunctionDef) and method.name == "__new__"
}
BY_KEYWORD = {name: node for name, node in (FUNCTIONS | CONSTRUCTORS).items() if node.args.kwonlyargs}


@pytest.mark.parametrize("name", POSITIONAL)
def test_functions_take_as_many_arguments_as_the_stub_says(name):
    arguments = FUNCTIONS[name].args
    assert not arguments.args, "arguments are positional only"
    too_many = [None] * (len(arguments.posonlyargs) + 1)

    with pytest.raises(
        TypeError, match=rf"expected (\d+ to )?{len(too_many) - 1} arguments, got {len(too_many)}"
    ):
        getattr(_native, name)(*too_many)


@pytest.mark.parametrize("name", BY_KEYWORD)
def test_functions_take_the_keywords_of_the_stub_and_need_those_without_a_default(name):
    arguments = BY_KEYWORD[name].args
    call = getattr(_native, name)
    valid = {"shape": (), "name": "", "splits": None, "tensors": ()}
    given = {keyword.arg: valid.get(keyword.arg, 0) for keyword in arguments.kwonlyargs}
    required = [
        keyword.arg
        for keyword, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]

    assert required
    for missing in required:
        rest = {keyword: value for keyword, value in given.items() if keyword != missing}
        with pytest.raises(TypeError, match=rf"missing required keyword argument: '{missing}'"):
            call(**rest)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        call(**given, other=0)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_methods_of_the_stub(name):
    methods = {node.name for node in CLASSES[name].body if isinstance(node, ast.FunctionDef)} - {"__new__"}

    assert {name for name in dir(getattr(_native, name)) if not name.startswith("__")} == methods


def test_prepared_cannot_be_subclassed():
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Special", (_native.Prepared,), {})


def test_the_library_is_that_of_the_package():
    path = Path(_native.library_path()).resolve()

    assert path.name.startswith("libhorovod.so")
    assert path.parent.name == "lib"
    assert path.parent.parent.name == "horovod"


def test_only_one_copy_of_the_core_is_in_the_process():
    maps = Path("/proc/self/maps").read_text()

    assert len(set(re.findall(r"\S*/libhorovod\.so\S*", maps))) == 1


def test_status_names_cover_the_codes_without_gaps():
    names = _native.status_names()

    assert list(names) == list(range(len(names)))
    assert names[0] == "ok"
    assert names[4] == "invalid argument"


def test_capabilities_name_the_engine():
    capabilities = _native.capabilities()

    assert capabilities["engines"] == "native"
    assert capabilities["dtypes"] == (1 << 11) - 1
