"""The driver's console and the reporters of tasks, over real sockets."""

import io
import threading

import pytest
from wiretap import Eavesdropper

from horovod.spark._console import Console, console_key
from horovod.spark._reporter import Reporter

KEY = bytes(32)


@pytest.fixture
def make():
    consoles, reporters = [], []

    def console(size, meeting_seconds=60.0):
        stdout, stderr = io.StringIO(), io.StringIO()
        consoles.append(Console(KEY, ["lo"], stdout, stderr, False, size, meeting_seconds))
        return consoles[-1], stdout, stderr

    def reporter(at, key=KEY):
        reporters.append(Reporter(at.addresses(), console_key(key)))
        return reporters[-1]

    yield console, reporter
    for one in reporters:
        one.close()
    for one in consoles:
        one.close()


def _meet_all(reporters):
    answers = [None] * len(reporters)

    def meet(at):
        answers[at] = reporters[at].meet(at, f"task {at}")

    threads = [threading.Thread(target=meet, args=[at]) for at in range(len(reporters))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_tasks_meet(make):
    make_console, make_reporter = make
    console, _, _ = make_console(3)

    answers = _meet_all([make_reporter(console) for _ in range(3)])

    assert answers == [["task 0", "task 1", "task 2"]] * 3


def test_if_one_does_not_come_all_must_meet_elsewhere(make):
    make_console, make_reporter = make
    console, _, _ = make_console(3, meeting_seconds=0.2)
    reporters = [make_reporter(console) for _ in range(3)]

    assert _meet_all(reporters[:2]) == [None, None]
    assert reporters[2].meet(2, "late") is None


def test_output_readiness_and_failures_arrive(make):
    make_console, make_reporter = make
    console, stdout, stderr = make_console(1)
    reporter = make_reporter(console)

    reporter.ready(4)
    reporter.line("stdout", "a\n")
    reporter.line("stderr", "b\n")
    reporter.line("log", "c\n")
    failure = '{"rank": 4, "host": "h", "when": 1, "summary": "KeyError", "traceback": "t"}'
    reporter.fail(failure)

    assert reporter.close()
    assert console.ready_ranks() == 1
    assert [one.summary for one in console.failures()] == ["KeyError"]
    assert stdout.getvalue() == "[4]<stdout>:a\nc\n"
    assert stderr.getvalue() == "[4]<stderr>:b\n"


def test_nothing_that_ranks_print_can_be_read_on_the_way(make):
    make_console, _ = make
    console, stdout, _ = make_console(1)
    with Eavesdropper(console.addresses()["lo"][0]) as tap:
        reporter = Reporter({"lo": [tap.address]}, console_key(KEY))
        reporter.meet(0, "a-name-of-a-host")
        reporter.ready(4)
        reporter.line("stdout", "what a rank prints\n")
        assert reporter.close()
        heard = tap.heard()

    assert stdout.getvalue() == "[4]<stdout>:what a rank prints\n"
    assert len(heard) >= 4
    for word in (b"a-name-of-a-host", b"what a rank prints", b"introduction", b"lines"):
        assert not any(word in one for one in heard)


def test_without_a_console_output_stays_here(capsys):
    reporter = Reporter({}, console_key(KEY))
    reporter._looked.wait(60)
    reporter.ready(2)
    reporter.line("stdout", "a\n")

    assert reporter.meet(0, "x") is None
    assert not reporter.close()
    assert capsys.readouterr().err == "[2]<stdout>:a\n"


def test_lines_in_pieces_do_not_mix(make):
    make_console, make_reporter = make
    console, stdout, _ = make_console(2)
    reporters = [make_reporter(console) for _ in range(2)]
    for rank, reporter in enumerate(reporters):
        reporter.ready(rank)

    long = "a" * 10_000
    for piece in (long, long, f"{long}\n"):
        for reporter in reporters:
            reporter.line("stdout", piece)
    reporters[0].line("stdout", "no end of line")

    assert all(reporter.close() for reporter in reporters)
    console.close()
    lines = stdout.getvalue().splitlines()
    whole = [f"[{rank}]<stdout>:{long * 3}" for rank in range(2)]
    assert sorted(lines) == sorted([*whole, "[0]<stdout>:no end of line"])


def test_a_line_without_end_is_shown_in_time(make, monkeypatch):
    monkeypatch.setattr("horovod.spark._console._LONGEST_LINE", 1 << 15)
    make_console, make_reporter = make
    console, stdout, _ = make_console(1)
    reporter = make_reporter(console)

    reporter.ready(0)
    reporter.line("stdout", "a" * (3 << 15))

    assert reporter.close()
    assert stdout.getvalue().count("\n") == 2, "a line whenever it is too long, before the end"
