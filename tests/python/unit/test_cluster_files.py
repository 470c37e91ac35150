"""The files of examples/cluster: they can be read, and what they name exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packages import need

yaml = need("yaml", "python")

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "cluster"
SHELL_FILES = sorted([*FOLDER.glob("*.sbatch"), *FOLDER.glob("*.sh")])
YAML_FILES = sorted(FOLDER.glob("*.yaml"))
ALL_FILES = [*SHELL_FILES, *YAML_FILES]


def documented_variables() -> set[str]:
    return set(re.findall(r"`(HOROVOD_[A-Z_]+)`", (ROOT / "docs/settings.md").read_text()))


def objects(path: Path) -> dict[str, Any]:
    return {entry["kind"]: entry for entry in yaml.safe_load_all(path.read_text())}


@pytest.mark.parametrize("path", ALL_FILES, ids=lambda path: path.name)
def test_variables_exist(path: Path) -> None:
    named = set(re.findall(r"HOROVOD_[A-Z_]+", path.read_text()))

    assert named <= documented_variables()


@pytest.mark.parametrize("path", SHELL_FILES, ids=lambda path: path.name)
def test_shell_files_are_programs(path: Path) -> None:
    done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert path.read_text().startswith("#!/bin/bash\n")


def test_every_file_is_explained() -> None:
    text = (ROOT / "docs/cluster.md").read_text() + (FOLDER / "README.md").read_text()

    assert [path.name for path in ALL_FILES if path.name not in text] == []


def test_the_batch_scripts_of_the_page_are_parts_of_the_files() -> None:
    page = (ROOT / "docs/cluster.md").read_text()
    block = re.search(r"```bash\n(#!/bin/bash\n.*?)```", page, re.DOTALL)

    assert block is not None
    lines = {line.split(" #")[0].rstrip() for line in (FOLDER / "horovodrun.sbatch").read_text().splitlines()}
    assert [line for line in block[1].splitlines() if line not in lines] == []


def test_the_pods_of_the_indexed_job_fit_together() -> None:
    found = objects(FOLDER / "indexed-job.yaml")
    service, job = found["Service"], found["Job"]
    pod = job["spec"]["template"]["spec"]
    container = pod["containers"][0]
    environment = {entry["name"]: entry["value"] for entry in container["env"]}

    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == int(environment["HOROVOD_SIZE"])
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert pod["subdomain"] == service["metadata"]["name"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert set(mounts) == set(volumes)
    assert environment["HOROVOD_KEY_FILE"] == f"{mounts['key']}/key"
    assert volumes["key"]["secret"]["defaultMode"] == 0o400


def test_the_mpijob_starts_horovodrun_in_its_launcher() -> None:
    specification = objects(FOLDER / "mpijob.yaml")["MPIJob"]["spec"]
    replicas = specification["mpiReplicaSpecs"]
    command = replicas["Launcher"]["template"]["spec"]["containers"][0]["command"]

    assert command[0] == "horovodrun"
    assert replicas["Launcher"]["replicas"] == 1
    assert replicas["Worker"]["replicas"] * specification["slotsPerWorker"] == 8


def test_the_workers_of_the_elastic_mpijob_may_come_and_go() -> None:
    specification = objects(FOLDER / "elastic-mpijob.yaml")["MPIJob"]["spec"]
    replicas = specification["mpiReplicaSpecs"]
    command = replicas["Launcher"]["template"]["spec"]["containers"][0]["command"]
    worker = replicas["Worker"]["template"]["spec"]
    options = dict(word.removeprefix("--").split("=") for word in command if "=" in word)

    assert int(options["slots-per-host"]) == specification["slotsPerWorker"]
    assert int(options["min-np"]) <= replicas["Worker"]["replicas"] * specification["slotsPerWorker"]
    assert worker["terminationGracePeriodSeconds"] > 30
    hook = worker["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert "pkill -TERM -x horovodrun" in hook[2]
    launcher = Path(sys.executable).with_name("horovodrun")
    asked = subprocess.run([launcher, *command[1:-2], "--help"], capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
