"""The documentation is true: its programs run, its links lead somewhere, its reference is current."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from job import horovodrun, run
from pages import FENCE, NOT_RUN, PROGRAMS, ROOT, commands_of, pages_with_programs, program_of, run_pages

LINKING = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    ROOT / "README.md",
]
LAUNCH = ROOT / "docs/launch.md"
SHOWING = [
    *LINKING,
    *sorted(path for path in (ROOT / "examples").rglob("*.*") if path.suffix in {".py", ".cc", ".sbatch"}),
]


def anchors_of(path: Path) -> set[str]:
    """Return what links into the page may name, as GitHub makes it of headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_programs_of_all_pages_run_on_two_workers() -> None:
    pages = pages_with_programs("torch")

    job = run_pages(pages, limit_seconds=240)

    assert job.code == 0, job.output
    assert job.output.count("is done") == 2 * len(pages)


def test_every_program_of_a_page_is_run_or_a_fragment() -> None:
    run_somewhere = {page for pages in PROGRAMS.values() for page in pages}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]

    assert [page for page in pages if program_of(page) and page not in {*run_somewhere, *NOT_RUN}] == []


def test_commands_of_pages_parse() -> None:
    commands = [(page, words) for page in SHOWING for words in commands_of(page)]
    assert len(commands) > 50

    for page, words in commands:
        doctor = ["doctor"] if words[0] == "doctor" else []
        rest = words[len(doctor) :]
        # Questions have no program, so that the words end with an option; of two questions the last counts.
        is_question = bool(doctor) or all(word.startswith("-") for word in rest)
        ask = [*rest, "--parse-json"] if is_question else ["--parse-json", *rest]
        # Without -np it is the batch system that says how many.
        parsed = run([horovodrun(), *doctor, *([] if "-np" in rest else ["-np", "1"]), *ask])
        assert parsed.code == 0, f"{page}: horovodrun {' '.join(words)}\n{parsed.output}"
        for file in words:
            assert not file.startswith("examples/") or (ROOT / file).exists(), f"{page}: {file}"


def test_the_configuration_file_that_is_shown_is_understood(tmp_path: Path) -> None:
    files = [block for block in FENCE.finditer(LAUNCH.read_text()) if block["language"] == "yaml"]
    assert files

    for file in files:
        (tmp_path / "job.yaml").write_text(file["code"])
        parsed = run(
            [horovodrun(), "--parse-json", "-np", "1", "--config-file", str(tmp_path / "job.yaml"), "true"]
        )
        assert parsed.code == 0, parsed.output
        assert json.loads(parsed.output)["warnings"] == []


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
