"""A process may end at any moment: without shutdown, with operations under way, by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import uuid

import pytest

LIMIT_SECONDS = 60

PREAMBLE = """
    import ctypes, sys, threading
    from horovod._core import _native
    memory = (ctypes.c_float * 4)(1, 1, 1, 1)
    address = ctypes.addressof(memory)

    def start(rank, size):
        _native.init((rank, size, rank, size, 0, 1), JOB, [], False, 0)

    def submit(notify=False):
        return _native.submit(
            kind=0, dtype=7, shape=(4,), input=address, output=address, name="x", owner=memory, notify=notify)
"""


def start_program(text: str, job: str = "none") -> subprocess.Popen[str]:
    program = f"JOB = {job!r}\n{textwrap.dedent(PREAMBLE)}\n{textwrap.dedent(text)}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HOROVOD_")}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def ends_with(text: str, code: int) -> None:
    """Run a program to its end."""
    process = start_program(text)
    output, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == code, output


def test_exit_without_shutdown():
    ends_with("start(0, 1); h = submit(); _native.wait(h, None)", 0)


def test_exit_while_an_operation_runs():
    ends_with("start(0, 1); submit()", 0)


def test_exit_while_a_daemon_thread_waits_for_completions():
    ends_with(
        """
        start(0, 1)
        waits = threading.Event()
        def wait_for_completions():
            waits.set()
            while _native.next_completed(None) is not None:
                pass
        threading.Thread(target=wait_for_completions, daemon=True).start()
        waits.wait()
        """,
        0,
    )


def test_exit_with_objects_of_the_module_alive():
    ends_with(
        """
        start(0, 1)
        prepared = _native.Prepared(kind=0, dtype=7, shape=(4,), name="p")
        buffer = _native.buffer_alloc((4,), 7)
        handle = submit()
        _native.wait(handle, None)
        """,
        0,
    )


def test_a_fork_may_drop_what_belongs_to_its_parent():
    ends_with(
        """
        import os
        start(0, 1)
        buffer = _native.buffer_alloc((4,), 7)
        handle = submit()
        child = os.fork()
        if child == 0:
            _native.release(handle)
            del buffer
            _native.shutdown()
            sys.exit(7)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code == 7, code
        assert _native.wait(handle, 10.0)
        """,
        0,
    )


def interrupt_when_it_waits(process: subprocess.Popen[str]) -> str:
    """Send Ctrl-C after the line "waits"; return what the program printed afterwards."""
    assert process.stdout is not None
    while process.stdout.readline() not in ("waits\n", ""):
        pass
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=LIMIT_SECONDS)[0]


def interrupted(call: str, job: str) -> str:
    """Interrupt a call of rank 0 whose peer never comes to the collective; return what it printed."""
    peer = start_program("start(1, 2); sys.stdin.read()", job)
    process = start_program(INTERRUPTED.format(call=call), job)
    try:
        return interrupt_when_it_waits(process)
    finally:
        for one in (peer, process):
            one.kill()
            one.communicate(timeout=LIMIT_SECONDS)


INTERRUPTED = """
    import gc, os, weakref
    class Owner: pass
    start(0, 2)
    owner = Owner()
    watched = weakref.ref(owner)
    def announce():
        while "'x'" not in _native.recent_operations():
            pass
        print("waits", flush=True)
    threading.Thread(target=announce, daemon=True).start()
    try:
        {call}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    del owner
    gc.collect()
    print("owner alive", watched() is not None, flush=True)
    os._exit(0)
"""
WHAT = "kind=0, dtype=7, shape=(4,), input=address, output=address, name='x', owner=owner"
RUN = f"_native.run({WHAT})"
SUBMIT = f"h = _native.submit({WHAT})"
WAIT = f"""{SUBMIT}
        _native.wait(h, None)"""
RELEASE = f"""{SUBMIT}
        _native.release(h)
        _native.barrier(0, None)"""


@pytest.mark.parametrize("call", [RUN, WAIT, RELEASE], ids=["run", "wait", "released too early"])
def test_ctrl_c_ends_a_call_and_the_owner_stays_with_the_operation(call):
    output = interrupted(call, f"interrupted{uuid.uuid4()}")

    assert output.splitlines() == ["interrupted", "owner alive True"]


def test_ctrl_c_ends_an_init_whose_peers_do_not_come():
    program = """
        try:
            print("waits", flush=True)
            start(0, 2)
        except KeyboardInterrupt:
            _native.shutdown()  # must not wait for the init
            print("interrupted", flush=True)
    """
    process = start_program(program, f"nobody{uuid.uuid4()}")

    output = interrupt_when_it_waits(process)

    assert output == "interrupted\n"
    assert process.returncode == 0


def test_ctrl_c_ends_an_init_that_waits_in_a_store_of_pythons():
    program = """
        import time
        class Store:
            def set(self, key, value):
                pass
            def get(self, key, seconds):
                print("waits", flush=True)
                time.sleep(60)
        try:
            _native.init((1, 2, 0, 1, 1, 2), JOB, [], False, 0, Store())
        except KeyboardInterrupt:
            _native.shutdown()  # must not wait for the init
            print("interrupted", flush=True)
    """
    process = start_program(program, f"nobody{uuid.uuid4()}")

    output = interrupt_when_it_waits(process)

    assert output == "interrupted\n"
    assert process.returncode == 0
