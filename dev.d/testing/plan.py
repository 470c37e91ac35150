"""The plan of ./dev test: every step, what it needs, how it loads the machine.

To add a suite, add its line to a list below, and what it needs to `preparations`. The lists are in order of
priority: what takes longest comes first. `cores` is how many a suite keeps busy on average, as the table at
the end of a run says: suites run together while the sum is at most the cores of the machine, and builds run
beneath them (schedule.py). What runs in `./dev test full` alone, and why, is said in CONTRIBUTING.md.
"""

from __future__ import annotations

import itertools
import subprocess
from dataclasses import dataclass, replace
from functools import partial

import frameworks
from frameworks import Framework
from kinds import TOOLS, build, check, ctest, install, package, pytest
from step import Step

PACKAGE_TARGETS = ("horovod", "horovodrun", "hvd_python", "hvd_tensorflow", "hvd_jax", "hvd_mxnet")
STANDINS = ("cuda_standin", "nccl_standin")  # jobs on GPUs need them
QUICK = "not soak and not slow"
FIRST_MINOR_WITH_KERAS_3 = 16
FUZZ_LIMIT_SECONDS = 14 * 3600  # an hour and a third for each target, also on one core
FULL_LIMIT_SECONDS = 3 * 3600  # at least: a suite may hold soaks of an hour each


@dataclass(frozen=True, slots=True)
class TensorFlow:
    """A release of TensorFlow, in an environment of its own."""

    version: str
    is_newest: bool

    @property
    def has_keras_3(self) -> bool:
        """Whether the Keras that comes with it is Keras 3."""
        return int(self.version.split(".")[1]) >= FIRST_MINOR_WITH_KERAS_3

    @property
    def suffix(self) -> str:
        """What the names of its environment and suites end in."""
        return "" if self.is_newest else f"-{self.version}"

    @property
    def venv(self) -> str:
        """Its environment."""
        return f".venv-tensorflow{self.suffix}"


@dataclass(frozen=True, slots=True)
class Torch:
    """A release of PyTorch: the newest in .venv, another in an environment of its own."""

    version: str
    venv: str

    @property
    def is_newest(self) -> bool:
        """Whether it is that of constraints.txt."""
        return self.venv == ".venv"


@dataclass(frozen=True, slots=True)
class Run:
    """What was asked for."""

    mode: str  # default, fast, full, python, torch, tensorflow, gpu, the name of a framework, asan or tsan
    pattern: str  # only suites whose name matches; empty: all
    tensorflow: TensorFlow
    oldest_tensorflow: TensorFlow | None  # None: one release was chosen
    frameworks: tuple[Framework, ...]  # the others
    torch: Torch = Torch("", ".venv")
    older_torch: tuple[Torch, ...] = ()  # besides

    @property
    def is_full(self) -> bool:
        """Whether the soaks and every number of ranks belong to it."""
        return self.mode == "full"

    @property
    def marks(self) -> str:
        """Which tests of pytest belong to it."""
        return "" if self.is_full else "not soak"


def make_run(mode: str, pattern: str) -> Run:
    """Find out which releases of TensorFlow there are to test."""
    command = [str(TOOLS / "call"), "tensorflow_releases"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    newest, chosen, oldest = (TensorFlow(version, is_newest=False) for version in answer.split())
    others = frameworks.find()
    command = [str(TOOLS / "call"), "torch_release"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    chosen_torch = Torch(*answer.split())
    if chosen != newest:
        return Run(mode, pattern, chosen, None, others, chosen_torch)
    newest = TensorFlow(newest.version, is_newest=True)
    older_torch = find_older_torch() if mode == "full" else ()
    return Run(mode, pattern, newest, oldest, others, chosen_torch, older_torch)


def find_older_torch() -> tuple[Torch, ...]:
    """Find out which older releases of PyTorch there are to test, if this Python has wheels of them."""
    command = [str(TOOLS / "call"), "older_torch"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return tuple(Torch(*line.split()) for line in answer.stdout.splitlines())


def suites(run: Run) -> list[Step]:
    """Return the suites of a run."""
    if run.mode == "fast":
        return fast(run)
    if run.mode == "python":
        return [*python(run), *tensorflow(run)]
    one_of = {"torch": torch, "tensorflow": tensorflow, "gpu": gpu}
    if run.mode in one_of:
        return one_of[run.mode](run)
    if run.mode in {"asan", "tsan"}:
        return [suite for suite in sanitizers(run) if suite.name.startswith(f"test {run.mode}")]
    chosen = [one for one in run.frameworks if run.mode == one.name]
    if chosen:
        return frameworks.suites(chosen[0], run.marks, is_full=False)
    wanted = [one for one in run.frameworks if run.is_full or not one.is_older]
    of_frameworks = (frameworks.suites(one, run.marks, is_full=run.is_full) for one in wanted)
    of_all = [*python(run), *release(run), *tensorflow(run), *mixed(run)]
    of_older = (torch(replace(run, torch=each)) for each in run.older_torch)
    last = [*sanitizers(run), check("install .venv", "build release")]
    steps = [*of_all, *itertools.chain(*of_frameworks), *itertools.chain(*of_older), *last]
    least = FULL_LIMIT_SECONDS if run.is_full else 0
    return [replace(step, limit_seconds=max(step.limit_seconds, least)) for step in steps]


def preparations(run: Run) -> list[Step]:
    """Return what suites may need. First what Python needs: its jobs wait while the rest is compiled."""
    tensorflows = [one for one in (run.tensorflow, run.oldest_tensorflow) if one is not None]
    older_torch = [*(() if run.torch.is_newest else (run.torch,)), *run.older_torch]
    # What does not compile in release would only fail in the same way once more.
    before_sanitizers = () if run.mode in {"asan", "tsan"} else ("build release",)
    return [
        install(".venv", "python"),
        *(install(one.venv, "torch", HVD_TORCH_VERSION=one.version) for one in older_torch),
        *(install(one.venv, "tensorflow", HVD_TENSORFLOW_VERSION=one.version) for one in tensorflows),
        *(install(one.venv, one.name) for one in run.frameworks),
        install("mpi", "mpi"),
        build("library", "release", *PACKAGE_TARGETS, *STANDINS),
        package(".venv", "build library", "install .venv"),
        *(package(one.venv, "build library", f"install {one.venv}") for one in older_torch),
        *(package(one.venv, "build library", f"install {one.venv}") for one in tensorflows),
        *(package(one.venv, "build library", f"install {one.venv}") for one in run.frameworks),
        build("release", "release", needs=("build library",)),
        build("asan", "asan", "hvd_tests", needs=before_sanitizers),
        build("tsan", "tsan", "hvd_thread_tests", needs=before_sanitizers),
        build("fuzz", "fuzz", "hvd_fuzz", needs=before_sanitizers),
    ]


def python(run: Run) -> list[Step]:
    """Return the suites of the package and of PyTorch."""
    ranks = (1, 2, 3, 4) if run.is_full else (2, 3)
    suite = partial(pytest, marks=run.marks)
    # A thousand random schedules of elastic jobs: some hours.
    soaks = [suite("python.soak", "jobs", marks="soak", limit_seconds=10 * 3600)] if run.is_full else []
    return [
        suite("python.jobs", "jobs", "install mpi", marks="not soak", cores=0.5, limit_seconds=3600),
        *soaks,
        *(suite(f"python.parallel.np{n}", "parallel", ranks=n, cores=1.5) for n in ranks),
        suite("python.unit", "unit", cores=0.5),
        suite("python.random", "random", cores=2, limit_seconds=7200),
    ]


def torch(run: Run) -> list[Step]:
    """Return what may differ between releases of PyTorch."""
    one = run.torch
    suffix = "" if one.is_newest else f"-{one.version}"
    suite = partial(pytest, venv=one.venv, marks=run.marks, cores=1.5)
    return [suite(f"python.torch{suffix}.parallel.np{n}", "parallel", ranks=n) for n in (2, 3)]


def gpu(run: Run) -> list[Step]:
    """Return the jobs on GPUs: on stand-ins, and on real ones where there is a driver."""
    suite = partial(pytest, marks=run.marks, arguments=("-k", "gpu"))
    venv = run.tensorflow.venv
    return [
        suite("python.gpu", "jobs", cores=1),
        suite(f"python.tensorflow{run.tensorflow.suffix}.gpu", "tensorflow/jobs", venv=venv, cores=0.5),
    ]


def release(run: Run) -> list[Step]:
    """Return the suites of the core as users get it."""
    suite = partial(ctest, preset="release", needs=("build release",), pattern=run.pattern)
    soaks = [suite("release.soak", "soak", without="")] if run.is_full else []
    return [
        suite("release.mpi", "mpi", needs=("build release", "install mpi"), cores=0.5),
        suite("release.process", "process", without="soak|alone", cores=0.5),
        suite("release", "unit|conformance|package"),
        suite("release.explore", "explore", HVD_EXPLORE_SECONDS="60" if run.is_full else "3"),
        *soaks,
        suite("release.alone", "alone", is_alone=True),
    ]


def tensorflow(run: Run) -> list[Step]:
    """Return the suites of TensorFlow and Keras with one release, and a part of them with the oldest."""
    one, suffix, folder = run.tensorflow, run.tensorflow.suffix, "tensorflow"
    suite = partial(pytest, venv=one.venv, marks=run.marks, cores=1.5)
    ranks = (1, 2, 3) if run.is_full else (3,)
    # The other backends are in the environment of the newest release alone.
    backends = ("tensorflow", "torch", "jax") if one.is_newest else ("tensorflow",)
    return [
        suite(f"python.tensorflow{suffix}.jobs", f"{folder}/jobs", cores=0.5),
        *(suite(f"python.tensorflow{suffix}.parallel.np{n}", f"{folder}/parallel", ranks=n) for n in ranks),
        *(
            suite(f"python.keras{suffix}.{name}", f"{folder}/keras", ranks=2, KERAS_BACKEND=name)
            for name in (backends if one.has_keras_3 else ())
        ),
        suite(f"python.keras{suffix}.legacy", f"{folder}/legacy_keras", ranks=2),
        *(oldest_tensorflow(run.oldest_tensorflow) if run.oldest_tensorflow is not None else ()),
    ]


def mixed(run: Run) -> list[Step]:
    """Return jobs whose ranks use different frameworks; PyTorch and JAX are in TensorFlow's environment."""
    if not run.tensorflow.is_newest or "mxnet" not in {one.name for one in run.frameworks}:
        return []
    needs = "package .venv-mxnet"
    return [pytest("python.mixed", "mixed", needs, venv=run.tensorflow.venv, marks=run.marks)]


def oldest_tensorflow(one: TensorFlow) -> list[Step]:
    """Return what may differ in the oldest release: the interfaces that it offers, and its Keras 2."""
    folder = "tensorflow"
    suite = partial(pytest, venv=one.venv, cores=1.5)
    killed = ("-k", "killed_peer and function")
    return [
        suite(f"python.tensorflow{one.suffix}.parallel.np2", f"{folder}/parallel", ranks=2, marks=QUICK),
        suite(f"python.keras{one.suffix}.legacy", f"{folder}/legacy_keras", ranks=2),
        suite(f"python.tensorflow{one.suffix}.jobs", f"{folder}/jobs", arguments=killed, cores=0.5),
    ]


def sanitizers(run: Run) -> list[Step]:
    """Return what ASan with UBSan, TSan and libFuzzer look at. TSan sees ranks only if they are threads."""
    suite = partial(ctest, pattern=run.pattern, without="soak|slow")
    fuzz = {"HVD_FUZZ_SECONDS": "3600", "HVD_FUZZ_KEEP": "1"} if run.is_full else {"HVD_FUZZ_SECONDS": "15"}
    return [
        suite("asan.process", "process", preset="asan", needs=("build asan",), cores=1),
        suite("asan", "unit|conformance", preset="asan", needs=("build asan",)),
        suite("tsan", "unit|conformance", preset="tsan", needs=("build tsan",)),
        suite("fuzz", "fuzz", preset="fuzz", needs=("build fuzz",), limit_seconds=FUZZ_LIMIT_SECONDS, **fuzz),
    ]


def fast(run: Run) -> list[Step]:
    """Return some minutes' worth of suites."""
    one = run.tensorflow
    suite = partial(pytest, marks=QUICK, ranks=2, cores=1.5)
    core = partial(ctest, preset="release", needs=("build release",), pattern=run.pattern)
    return [
        suite("python.parallel.np2", "parallel"),
        suite("python.unit", "unit", ranks=0, cores=0.5),
        core("release", "unit|conformance|package", without="soak|slow"),
        suite(f"python.tensorflow{one.suffix}.parallel.np2", "tensorflow/parallel", venv=one.venv),
    ]
