"""What ./dev test is made of: the order of steps, and that no failure is overlooked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "dev.d/testing"))

import check_results
import ctest_results
import plan
import pytest_results
import run
import schedule
from step import Ended, Step

WELL = Ended(code=0, timed_out=False, seconds=1, cpu_seconds=1)
BADLY = replace(WELL, code=1)


@pytest.fixture(autouse=True)
def logs(tmp_path, monkeypatch):
    monkeypatch.setattr("step.LOGS", tmp_path)
    monkeypatch.setattr("schedule.LOGS", tmp_path)


def suite(name="suite", cores=1.0, **more):
    return Step(name, ("true",), cores=cores, **more)


def run_all(*steps):
    """Names in the order of their ends, and of those that did not start."""
    ends = {}

    def on_end(step, ended):
        ends[step.name] = ended
        return ended.code == 0 and not ended.timed_out

    left = schedule.run(list(steps), 2, on_end)
    return ends, [step.name for step in left]


def test_suites_share_the_cores_and_a_build_runs_beneath_them():
    build = suite("build", is_build=True)

    assert schedule.fits(suite(cores=1.5), [suite(cores=0.5), build], 2)
    assert not schedule.fits(suite(cores=1.5), [suite(cores=1)], 2)
    assert schedule.fits(build, [suite(cores=2)], 2)
    assert not schedule.fits(build, [build], 2)
    assert schedule.fits(suite(cores=8), [build], 2), "alone among the suites it may want more than there is"


def test_nothing_runs_beside_what_measures():
    alone = suite("alone", is_alone=True)

    assert schedule.fits(alone, [], 2)
    assert not schedule.fits(alone, [suite("build", is_build=True)], 2)
    assert not schedule.fits(suite(cores=0.1), [alone], 2)
    assert not schedule.fits(suite("build", is_build=True), [alone], 2)


def test_a_step_waits_for_what_it_needs_and_does_not_run_if_that_failed():
    ends, left = run_all(
        Step("last", ("true",), needs=("first",)),
        Step("first", ("true",)),
        Step("never", ("true",), needs=("broken",)),
        Step("broken", ("false",)),
        Step("all the same", ("true",), needs=("optional",)),
        Step("optional", ("false",), may_fail=True),
    )

    assert list(ends).index("first") < list(ends).index("last")
    assert left == ["never"]
    assert "all the same" in ends


def test_a_step_beyond_its_limit_is_ended_with_its_children(tmp_path):
    script = f"sleep 1000 & echo $! >{tmp_path}/child; wait"

    ends, _ = run_all(Step("hangs", ("bash", "-c", script), limit_seconds=1))

    assert ends["hangs"].timed_out
    child = int((tmp_path / "child").read_text())
    status = Path(f"/proc/{child}/status")
    assert not status.exists() or "State:\tZ" in status.read_text()


def write_ctest(folder, entries):
    cases = "".join(
        f'<testcase name="{name}" status="{status}" time="1"><system-out>{text}</system-out></testcase>'
        for name, status, text in entries
    )
    (folder / "ctest.xml").write_text(f"<testsuite>{cases}</testsuite>")


def read_ctest(folder, log="", ended=WELL, *, may_be_empty=False):
    step = suite("test release")
    step.log.write_text(log)
    return ctest_results.read(step, ended, folder, "release", may_be_empty=may_be_empty)


def test_single_tests_of_googletest_are_counted(tmp_path):
    write_ctest(tmp_path, [("unit.A/Plan", "fail", "[ RUN      ] Plan.Bad\nwhy\n[  FAILED  ] Plan.Bad")])
    (tmp_path / "unit.A-Plan.xml").write_text(
        "<testsuites><testsuite>"
        '<testcase classname="Plan" name="Good" status="run" result="completed" time="3"/>'
        '<testcase classname="Plan" name="Off" status="run" result="skipped"><skipped/></testcase>'
        '<testcase classname="Plan" name="Bad" status="run" result="completed"><failure/></testcase>'
        "</testsuite></testsuites>"
    )

    outcome = read_ctest(tmp_path)

    assert (outcome.passed, outcome.failed, outcome.skipped) == (1, 1, 1)
    assert outcome.failures[0].splitlines()[::2] == ["release Plan.Bad", "    | why"]
    assert outcome.case_seconds["Plan.Good"] == 3


def test_what_a_program_wants_to_be_shown_is_shown_also_when_all_is_well(tmp_path):
    write_ctest(tmp_path, [("a_fuzz", "run", "")])
    (tmp_path / "a_fuzz.said").write_text("a_fuzz: 12 runs\n")

    assert read_ctest(tmp_path).remarks == ["a_fuzz: 12 runs"]


FUZZER = """#!/bin/sh
case $1 in
-merge=1) touch "$4/one-that-reaches-more" ;;
*) echo "#9 NEW    cov: 7 ft: 8 corp: 1/1b"; echo "#99 DONE   cov: 81 ft: 321 corp: 2/2b"
   echo "stat::number_of_executed_units: 99" ;;
esac
"""


@pytest.mark.parametrize("keeps", [False, True])
def test_a_fuzz_target_says_what_it_reached_and_in_a_full_run_keeps_what_it_found(tmp_path, keeps):
    program, corpus = tmp_path / "a_fuzz", tmp_path / "corpus"
    program.write_text(FUZZER)
    program.chmod(0o755)
    corpus.mkdir()
    (corpus / "seed").touch()
    settings = {
        "HVD_FUZZ_SECONDS": "3600",
        "HVD_FUZZ_KEEP": str(int(keeps)),
        "HVD_TEST_RESULTS": str(tmp_path),
    }

    script = str(ROOT / "tests/fuzz/run")
    subprocess.run([script, program, tmp_path / "found", corpus], check=True, env={**os.environ, **settings})

    kept = ", 1 inputs new in a corpus of 2" if keeps else ""
    line = f"a_fuzz: 99 runs in 3600 s, coverage 81, features 321, findings 0{kept}\n"
    assert (tmp_path / "a_fuzz.said").read_text() == line


def test_a_full_run_fuzzes_each_target_for_an_hour_and_has_the_time_for_it():
    tensorflow = plan.TensorFlow("2.21.0", is_newest=True)
    step = next(
        one for one in plan.sanitizers(plan.Run("full", "", tensorflow, None, ())) if one.name == "test fuzz"
    )
    targets = list((ROOT / "tests/fuzz").glob("*_fuzz.cc"))

    assert step.environment == {"HVD_FUZZ_SECONDS": "3600", "HVD_FUZZ_KEEP": "1"}
    assert step.limit_seconds >= len(targets) * 4800, "on one core"


def test_a_program_that_crashes_or_hangs_is_a_failure_that_names_the_test(tmp_path):
    write_ctest(tmp_path, [("unit.Plan", "fail", "[ RUN      ] Plan.Crashes\nlast words")])

    outcome = read_ctest(tmp_path, "1/1 Test #1: unit.Plan .......***Exception: SegFault  0.10 sec")

    assert outcome.failed == 1
    title = "release Plan.Crashes (did not end, Exception: SegFault; unit.Plan)"
    assert outcome.failures[0].splitlines()[0] == title


def test_a_run_of_ctest_without_a_test_is_a_failure_unless_suites_were_chosen(tmp_path):
    log = "No tests were found!!!"

    assert read_ctest(tmp_path, log).failed == 1
    assert read_ctest(tmp_path, log, may_be_empty=True).failed == 0
    assert read_ctest(tmp_path, "ctest: not found", BADLY, may_be_empty=True).failed == 1


def read_pytest(folder, reports, ended=WELL, ranks=2):
    for name, text in reports.items():
        (folder / name).write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    step = suite("test python")
    step.log.write_text("the end of the log")
    return pytest_results.read(step, ended, folder, ranks)


GOOD = '<testcase classname="a" name="b" time="2"/>'
BAD = '<testcase classname="a" name="b" time="1"><failure>why</failure></testcase>'


def test_a_test_of_a_job_counts_once_and_fails_if_it_fails_on_any_rank(tmp_path):
    good = read_pytest(tmp_path, {"rank-0.xml": GOOD, "rank-1.xml": GOOD})
    bad = read_pytest(tmp_path, {"rank-0.xml": GOOD, "rank-1.xml": BAD}, BADLY)

    assert (good.passed, good.failed) == (1, 0)
    assert (bad.passed, bad.failed) == (0, 1)
    assert bad.failures == ["a.b (rank-1)\n    | why"]


@pytest.mark.parametrize(
    ("reports", "ended"),
    [
        ({"rank-0.xml": GOOD}, WELL),  # a rank without a report
        ({"rank-0.xml": GOOD, "rank-1.xml": GOOD}, BADLY),
        ({"rank-0.xml": "", "rank-1.xml": ""}, WELL),  # no test
        ({}, replace(BADLY, timed_out=True)),
    ],
)
def test_a_suite_that_does_not_say_what_failed_is_a_failure(tmp_path, reports, ended):
    outcome = read_pytest(tmp_path, reports, ended)

    assert outcome.failed == 1
    assert "the end of the log" in outcome.failures[0]


@pytest.mark.parametrize(
    ("log", "ended", "counts"),
    [
        ("  format    ok      1.0 s\n  clang     ok      9.0 s\ncheck passed\n", WELL, (2, 0)),
        ("  format    ok      1.0 s\n  clang     FAILED  9.0 s\n    | why\ncheck failed\n", BADLY, (1, 1)),
        ("  format    ok      1.0 s\nclang-format: not found\n", BADLY, (1, 1)),
        ("", WELL, (0, 1)),
    ],
)
def test_parts_of_the_check_are_counted(log, ended, counts):
    step = suite("test check")
    step.log.write_text(log)

    outcome = check_results.read(step, ended)

    assert (outcome.passed, outcome.failed) == counts
    assert bool(outcome.failures) == bool(counts[1])


def names(mode, pattern=""):
    tensorflow, oldest = plan.TensorFlow("2.21.0", is_newest=True), plan.TensorFlow("2.13.1", is_newest=False)
    others = plan.frameworks.find()
    return [step.name for step in run.steps_of(plan.Run(mode, pattern, tensorflow, oldest, others))]


def test_the_full_run_holds_every_step_of_the_others():
    full = set(names("full"))

    others = [one.name for one in plan.frameworks.find()]
    for mode in ("default", "fast", "python", "tensorflow", *others, "asan", "tsan"):
        assert set(names(mode)) <= full, mode


@pytest.mark.parametrize("minor", [10, 11, 12])
def test_frameworks_that_need_an_older_python_are_left_out(minor, tmp_path, monkeypatch):
    python = tmp_path / "python3"
    version = f"import sys; sys.version_info = (3, {minor}, 0)"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{version}; exec(sys.argv[1])" "$2"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))

    found = {name: plan.frameworks.Framework(name).has_python for name in ("mxnet", "jax")}

    assert found == {"mxnet": minor <= 11, "jax": True}


def test_the_full_run_gives_each_suite_the_time_that_its_soaks_take():
    steps = {step.name: step for step in run.steps_of(plan.make_run("full", ""))}
    source = (ROOT / "tests/explore/explore_test.cc").read_text(encoding="utf-8")
    suites = (ROOT / "tests/explore/CMakeLists.txt").read_text(encoding="utf-8")

    kinds = len(re.findall(r"^ *Case\{", source, re.MULTILINE))
    seconds = int(steps["test release.explore"].environment["HVD_EXPLORE_SECONDS"])
    limit = int(re.search(r"hvd_explore_tests .*TIMEOUT (\d+)", suites)[1])
    assert kinds > 10
    assert 2 * kinds * seconds < limit, "twice: a finding is made shorter, and the machine has other work"
    limits = {name: step.limit_seconds for name, step in steps.items() if name.startswith("test python.")}
    assert limits["test python.jobs"] > 2 * 3600, "a thousand resets may take an hour, and much else is there"
    assert all(limit > 2 * 3600 for limit in limits.values()), limits


def test_the_full_run_also_holds_older_releases_of_pytorch():
    mine = plan.make_run("full", "")
    steps = run.steps_of(mine)
    names_of_all = {step.name for step in steps}

    assert not plan.make_run("default", "").older_torch
    for one in mine.older_torch:
        assert {f"install {one.venv}", f"test python.torch-{one.version}.parallel.np2"} <= names_of_all


def test_a_pattern_leaves_out_what_its_suites_do_not_need():
    needed = ["install .venv", "build library", "package .venv"]

    assert names("python", "python.unit") == [*needed, "test python.unit"]
