"""MXNet itself, or what keeps it from being imported, with the way out."""

from __future__ import annotations

from typing import Any, Final

TRIED: Final = "mxnet==1.9.1 numpy==1.23.5"
"""What the tests run with; MXNet is retired, and this is its last release."""

_MAJOR: Final = 1
_LIBRARIES: Final = {"libquadmath": "libquadmath0", "libgomp": "libgomp1", "libgfortran": "libgfortran5"}
"""Debian's packages of libraries that MXNet's wheel takes from the system."""


def explanation(error: BaseException) -> str:
    """Say why MXNet cannot be imported and what helps; pure."""
    text = str(error)
    if isinstance(error, AttributeError) and "numpy" in text:
        return (
            f"MXNet uses names that this NumPy no longer has ({text.splitlines()[0]}); "
            "install numpy==1.23.5, or say `import numpy; numpy.bool = bool` before the import of MXNet"
        )
    if isinstance(error, ModuleNotFoundError) and error.name == "mxnet":
        return f"MXNet is not installed; pip install {TRIED} (Python 3.10 or 3.11)"
    if isinstance(error, ModuleNotFoundError) and error.name == "distutils":
        return (
            "MXNet needs distutils, which Python 3.12 no longer has; use Python 3.11, or install setuptools"
        )
    for library, package in _LIBRARIES.items():
        if library in text:
            return (
                f"MXNet needs {library} of the system ({text}); install it, "
                f"in Debian with apt-get install {package}"
            )
    return f"MXNet cannot be imported ({type(error).__name__}: {text}); these go together: {TRIED}"


def version_problem(version: str) -> str | None:
    """Return why a release cannot be used, or None; pure."""
    if version.split(".", maxsplit=1)[0] == str(_MAJOR):
        return None
    return (
        f"MXNet {version} calls asynchronous functions with other arguments than MXNet 1; "
        f"this front end is for 1.9.1: pip install {TRIED}"
    )


def _import() -> Any:
    try:
        import mxnet  # noqa: PLC0415 - what it raises is explained
    except (ImportError, AttributeError, OSError) as error:
        message = f"horovod.mxnet: {explanation(error)}"
        raise ImportError(message) from error
    problem = version_problem(mxnet.__version__)
    if problem is not None:
        message = f"horovod.mxnet: {problem}"
        raise ImportError(message)
    return mxnet


mx: Any = _import()
