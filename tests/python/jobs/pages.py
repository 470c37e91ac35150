"""What the pages of the documentation show: their programs, and the commands that start them."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from job import Ended, horovodrun, run

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"

# Pages whose programs a test runs, by the framework in whose environment that test runs.
PROGRAMS = {
    "torch": [*sorted((DOCS / "torch").glob("*.md")), DOCS / "migration.md"],
    "tensorflow": [*sorted((DOCS / "tensorflow").glob("*.md")), *sorted((DOCS / "keras").glob("*.md"))],
    "jax": sorted((DOCS / "jax").glob("*.md")),
    "mxnet": sorted((DOCS / "mxnet").glob("*.md")),
}
# Their programs need GPUs, or a cluster of Ray or Spark.
NOT_RUN = [DOCS / name for name in ("gpu.md", "ray.md", "spark.md", "spark-estimators.md")]

FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)

# Runs the blocks of each page as one program, each page in a job of its own within the same processes.
RUNNER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from horovod._core.basics import basics
import pages
for path in map(Path, sys.argv[2:]):
    exec(compile(pages.program_of(path), str(path), "exec"), {"__name__": "__main__"})
    basics.shutdown()
    print("page", path.name, "is done", flush=True)
"""


def program_of(path: Path) -> str:
    """Return the Python of a page, on the lines where it stands; a `python fragment` is left out."""
    page = path.read_text()
    program = ""
    for block in FENCE.finditer(page):
        if block["language"] == "python":
            first_line = page.count("\n", 0, block.start("code"))
            program += "\n" * (first_line - program.count("\n")) + block["code"]
    return program


def pages_with_programs(framework: str) -> list[Path]:
    """Return the pages that the tests of a framework run."""
    return [page for page in PROGRAMS[framework] if program_of(page)]


def run_pages(pages: list[Path], limit_seconds: float, **variables: str) -> Ended:
    """Run the programs of pages on two ranks, each of which prints "page NAME is done" after each."""
    command = [sys.executable, "-c", RUNNER, str(Path(__file__).parent), *map(str, pages)]
    return run([horovodrun(), "-np", "2", *command], limit_seconds, **variables)


# A word that stands for others: N, NAME.py, [options], <program>, ...
_PLACEHOLDER = re.compile(r"(.*/)?[A-Z]+(\.py)?|.*(\.\.\.|…|[\[\]<>]).*")
_ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")


def commands_of(path: Path) -> list[list[str]]:
    """Return the words behind `horovodrun` of the commands that a file shows.

    Of a page these are the lines of its blocks, and what stands inside a sentence if it names a program or
    the doctor; of other files the lines that begin with it, in comments too. What has a placeholder is left
    out.
    """
    text = path.read_text().replace("\\\n", " ")
    if path.suffix == ".md":
        lines = [line for block in FENCE.finditer(text) for line in block["code"].splitlines()]
        spans = re.findall(r"`([^`\n]*\bhorovodrun [^`\n]*)`", FENCE.sub("", text))
        lines += [span for span in spans if re.search(r"horovodrun doctor|python|\./", span)]
    else:
        lines = [line.lstrip("#/ ") for line in text.splitlines()]
    commands = []
    for line in lines:
        if "horovodrun " not in line:
            continue
        try:
            words = shlex.split(line.removeprefix("$ ").removeprefix("exec "), comments=True)
        except ValueError:  # prose with an apostrophe
            continue
        while words and _ASSIGNMENT.fullmatch(words[0]):
            words.pop(0)
        if len(words) < 2 or Path(words[0]).name != "horovodrun" or any(map(_PLACEHOLDER.fullmatch, words)):
            continue
        if words[1].startswith("-") or words[1] == "doctor":
            commands.append([word for word in words[1:] if word != "&"])
    return commands
