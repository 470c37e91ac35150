"""The wheel: what it holds, what it needs, and that it runs on several versions of Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from job import clean_environment, run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
BUILD_SECONDS = 1800
LARGEST_BYTES = 10 << 20
VERSIONS = ("3.10", "3.11", "3.12", "3.13")

# What any Linux with the C library has.
SYSTEM_LIBRARIES = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}

PROGRAM = """
import ctypes
from horovod._core import _native

_native.init(None, None, [], False, 0)
memory = (ctypes.c_float * 4)(1, 2, 3, 4)
address = ctypes.addressof(memory)
size = _native.size()
handle = _native.submit(kind=0, dtype=7, shape=(4,), input=address, output=address, name="x", owner=memory)
assert _native.wait(handle, 30.0)
_native.release(handle)
assert list(memory) == [size, 2 * size, 3 * size, 4 * size], list(memory)
_native.shutdown()
print("reduced", _native.library_path())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once, with variables of the original that must not matter."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--verbose", "--no-deps", "--no-build-isolation"]
    built = run(
        # Kept, so that a second run compiles only what has changed.
        [
            *command,
            f"--config-settings=build-dir={ROOT / 'build/wheel'}",
            "--wheel-dir",
            str(folder),
            str(ROOT),
        ],
        limit_seconds=BUILD_SECONDS,
        HOROVOD_WITH_PYTORCH="1",
        HOROVOD_GPU_OPERATIONS="NCCL",
    )
    assert built.code == 0, built.output
    assert "HOROVOD_WITH_PYTORCH" in built.output, "the build says that the variable has no effect"
    assert "have no effect" in built.output
    (path,) = folder.glob("*.whl")
    return path


def needed_libraries(program: Path) -> set[str]:
    """The shared libraries that a file asks for."""
    text = subprocess.run(
        ["readelf", "--dynamic", str(program)], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


def find_python(version: str) -> str | None:
    """An interpreter of this version, from the path or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python"))]
    candidates.append(shutil.which(f"python{version}") or "")
    for candidate in filter(None, candidates):
        # A name in the path need not work: pyenv puts shims there for versions that are not chosen.
        found = run([candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
        if found.code == 0 and found.output.strip() == version:
            return candidate
    return None


def test_one_wheel_serves_all_versions_and_is_small(wheel):
    assert re.fullmatch(r"horovod-[0-9.]+-cp310-abi3-\w*linux\w*_\w+\.whl", wheel.name)
    assert wheel.stat().st_size < LARGEST_BYTES


def test_the_wheel_holds_the_package_the_core_and_the_launcher(wheel):
    names = zipfile.ZipFile(wheel).namelist()

    for name in (
        "horovod/__init__.py",
        "horovod/py.typed",
        "horovod/jax/__init__.py",
        "horovod/keras/__init__.py",
        "horovod/mxnet/__init__.py",
        "horovod/tensorflow/__init__.py",
        "horovod/torch/__init__.py",
        "horovod/_core/_native.abi3.so",
        "horovod/_core/_native.pyi",
        "horovod/lib/libhorovod.so",
        "horovod/lib/libhorovod_jax.so",
        "horovod/lib/libhorovod_mxnet.so",
        "horovod/lib/libhorovod_tensorflow.so",
        "horovod/include/horovod/hvd.h",
        "horovod/include/horovod/hvd.hpp",
    ):
        assert name in names
    assert any(re.fullmatch(r"horovod-[0-9.]+\.data/scripts/horovodrun", name) for name in names)
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests", "src"))]


def test_the_wheel_asks_for_no_framework(wheel):
    (metadata,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA"))
    text = zipfile.ZipFile(wheel).read(metadata).decode()

    required = [
        line for line in text.splitlines() if line.startswith("Requires-Dist") and "extra" not in line
    ]

    assert required == ["Requires-Dist: cloudpickle"]
    assert "Provides-Extra: torch" in text
    assert "Provides-Extra: pytorch" in text


def test_the_compiled_files_need_the_c_library_alone(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    (launcher,) = tmp_path.glob("*.data/scripts/horovodrun")
    module, library = tmp_path / "horovod/_core/_native.abi3.so", tmp_path / "horovod/lib/libhorovod.so"

    assert needed_libraries(library) <= SYSTEM_LIBRARIES
    for adapter in ("libhorovod_jax.so", "libhorovod_tensorflow.so", "libhorovod_mxnet.so"):
        assert needed_libraries(library.with_name(adapter)) <= {*SYSTEM_LIBRARIES, "libhorovod.so"}
    plugin = library.with_name("libhorovod_gloo.so")  # only where Gloo was there to build it
    if plugin.exists():
        assert "libgloo.so.0" in needed_libraries(plugin)
    assert needed_libraries(launcher) <= SYSTEM_LIBRARIES
    assert needed_libraries(module) - SYSTEM_LIBRARIES == {"libhorovod.so"}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_runs(version, wheel, tmp_path):
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    install_without_pip(wheel, python, tmp_path / "env")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    own_python = str(tmp_path / "env/bin/python")

    alone = run([own_python, str(script)])
    job = run([str(tmp_path / "env/bin/horovodrun"), "-np", "2", own_python, str(script)])

    assert alone.code == 0, alone.output
    assert str(tmp_path / "env") in alone.output
    assert job.code == 0, job.output
    assert job.output.count("reduced") == 2


def install_without_pip(wheel: Path, python: str, folder: Path) -> None:
    """Make an environment and unpack the wheel: its only dependency is not for these programs."""
    subprocess.run(
        [python, "-m", "venv", "--without-pip", str(folder)],
        check=True,
        timeout=120,
        env=clean_environment(),
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    (launcher,) = packages.glob("*.data/scripts/horovodrun")
    launcher.rename(folder / "bin/horovodrun")
    (folder / "bin/horovodrun").chmod(0o755)
