"""The documentation is true: its programs run, its links lead somewhere, its reference is current."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from job import horovodrun, run

ROOT = Path(__file__).parents[3]
PAGES = [*sorted((ROOT / "docs/torch").glob("*.md")), ROOT / "docs/migration.md"]
LINKING = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    ROOT / "README.md",
]
FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)

# Runs the blocks of each page as one program, each page in a job of its own within the same processes.
RUNNER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import horovod.torch as hvd
import test_docs
for path in map(Path, sys.argv[2:]):
    exec(compile(test_docs.program_of(path), str(path), "exec"), {"__name__": "__main__"})
    hvd.shutdown()
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


def anchors_of(path: Path) -> set[str]:
    """Return what links into the page may name, as GitHub makes it of headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_programs_of_all_pages_run_on_two_workers(tmp_path: Path) -> None:
    runner = tmp_path / "runner.py"
    runner.write_text(RUNNER)
    pages = [str(page) for page in PAGES if program_of(page)]
    command = [sys.executable, str(runner), str(Path(__file__).parent), *pages]

    job = run([horovodrun(), "-np", "2", *command], limit_seconds=240)

    assert job.code == 0, job.output
    assert job.output.count("is done") == 2 * len(pages)


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        goal = (page.parent / file).resolve() if file else page
        assert goal.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors_of(goal), f"{page}: {target}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]

    assert [str(page) for page in pages if page.parts[0] != "decisions" and f"({page})" not in index] == [
        "README.md"
    ]


def test_the_reference_is_current() -> None:
    generator = run([sys.executable, str(ROOT / "docs/generate_api.py"), "--check"])

    assert generator.code == 0, generator.output
