"""The examples run as their texts say: with horovodrun and without, and what they train learns."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

import pytest
from job import ELASTIC_EXAMPLES, Ended, horovodrun, run, run_elastic_example

EXAMPLES = Path(__file__).parents[3] / "examples/torch"
MODULES = {"pictures", "resnet"}

# Arguments that make them short, where the defaults are for people who watch.
ARGUMENTS = {
    "cnn": ["--epochs", "2", "--train-pictures", "1024", "--test-pictures", "256", "--batch-size", "16"],
    "ddp": ["--epochs", "2", "--pictures", "512"],
    "fsdp2": ["--steps", "20"],
    "join_uneven_data": ["--epochs", "2", "--pictures", "256"],
    "mixed_precision": ["--epochs", "2", "--pictures", "1024"],
    "process_sets": ["--epochs", "2", "--pictures", "512"],
    "sharded_optimizer": ["--epochs", "2", "--pictures", "512"],
    "synthetic_benchmark": [
        *("--image-size", "32", "--batch-size", "4", "--num-warmup-batches", "1"),
        *("--num-batches-per-iter", "2", "--num-iters", "3", "--compare-to-one"),
    ],
}


@functools.cache
def run_example(name: str, size: int, *more: str) -> Ended:
    """Run with horovodrun, or for size 0 with plain python; tests that look at the same run share it."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *ARGUMENTS[name], *more]
    job = run([horovodrun(), "-np", str(size), *command] if size else command)
    assert job.code == 0, job.output
    assert "Warning" not in job.output, job.output
    return job


def losses(job: Ended) -> list[float]:
    return [float(number) for number in re.findall(r"loss ([\d.]+)", job.output)]


def test_every_example_is_tested_and_described() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    described = (EXAMPLES / "README.md").read_text()

    assert names == {*ARGUMENTS, *MODULES}
    assert all(f"`{name}.py`" in described for name in names)


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_one_worker(name: str) -> None:
    assert run_example(name, 0).output


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return "--checkpoint", str(tmp_path_factory.mktemp("sharded") / "model.pt")


@pytest.mark.parametrize("name", sorted(ARGUMENTS.keys() - {"process_sets", "synthetic_benchmark"}))
def test_two_workers_learn(name: str, checkpoint: tuple[str, str]) -> None:
    job = run_example(name, 2, *(checkpoint if name == "sharded_optimizer" else ()))

    assert losses(job)[-1] < 0.8 * losses(job)[0], job.output
    assert "[1]<stdout>" not in job.output


def test_the_cnn_shows_accuracy_speed_and_communication() -> None:
    last = run_example("cnn", 2).output.splitlines()[-1]

    numbers = re.search(r"accuracy +([\d.]+)%, +(\d+) images/s, +([\d.]+)% of the time communicating", last)
    assert numbers, last
    accuracy, speed, communicating = map(float, numbers.groups())
    assert accuracy > 50
    assert speed > 0
    assert 0 < communicating < 100


def test_the_benchmark_shows_speed_and_scaling() -> None:
    output = run_example("synthetic_benchmark", 2, "--fp16-allreduce", "--tune-allocator").output

    assert output.count("iteration") == 2 * 3
    assert re.search(r"all 2 worker\(s\): +[\d.]+ \+- [\d.]+ images/s", output)
    assert re.search(r"scaling efficiency: +[\d.]+%", output)


def test_the_benchmark_takes_adasum() -> None:
    assert "all 2 worker(s)" in run_example("synthetic_benchmark", 2, "--use-adasum").output


def test_the_large_model_has_the_parameters_of_resnet50() -> None:
    count = "import resnet; print(sum(p.numel() for p in resnet.MODELS['resnet50']().parameters()))"

    job = run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(EXAMPLES)!r}); {count}"])

    assert job.output.strip() == "25557032"


def test_two_teams_train_two_models() -> None:
    output = run_example("process_sets", 2).output

    assert "team 0 (ranks [0]" in output
    assert "team 1 (ranks [1]" in output
    assert "all workers now have the model of team 0" in output


def test_the_sharded_checkpoint_goes_on_with_another_number_of_workers(checkpoint: tuple[str, str]) -> None:
    first = run_example("sharded_optimizer", 2, *checkpoint)
    second = run_example("sharded_optimizer", 3, *checkpoint)

    assert losses(second)[0] < 0.8 * losses(first)[0], second.output


def test_each_worker_of_fsdp2_keeps_its_part() -> None:
    output = run_example("fsdp2", 2).output

    mine, whole = map(int, re.search(r"keeps (\d+) of (\d+)", output).groups())  # type: ignore[union-attr]
    assert mine == whole // 2


def test_the_elastic_example_learns_on_the_hosts_of_its_script(tmp_path: Path) -> None:
    job = run_elastic_example(tmp_path, "torch_linear", "--epochs", "3", "--seconds-per-step", "0")

    assert job.code == 0, job.output
    assert losses(job)[-1] < 0.5 * losses(job)[0], job.output
    assert len(re.findall(r"rank \d is done after 96 steps", job.output)) == 2, job.output


def test_every_elastic_example_is_described() -> None:
    described = (ELASTIC_EXAMPLES / "README.md").read_text()

    assert all(f"`{path.name}`" in described for path in ELASTIC_EXAMPLES.glob("*.py"))
